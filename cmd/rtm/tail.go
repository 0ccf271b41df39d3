package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
)

func newTailCommand() *cobra.Command {
	var t tail
	command := &cobra.Command{
		Use:   "tail TOPIC [TOPIC...]",
		Short: "show the events of topics as they are published",
		Long: `Subscribe to topics for as long as this runs, and print each event. Ctrl-C ends it and unsubscribes. The bus keeps no
past: what is shown is what is published from now on.

A client has one subscription. With the root key, tail makes a client of its own (rtm-tail-…) and removes it in the end. With a
client's token it uses that client, and refuses if the client has a subscription already, which would be replaced.
If tail is killed, the next one on this machine removes what it left.

A topic that does not exist is refused, for it is mostly a typing error, and subscribing would create it. --create does so.

Deliveries. The bus must reach this machine by https. If it runs here too (and allows loopback and self-signed certificates, as rtm
dev does) nothing needs to be set. Otherwise --listen says where to listen, --cert and --key have a certificate that the bus
trusts, and --public-url is how the bus reaches all that: also a proxy or tunnel, which with --plain has the certificate.
An event is acknowledged once it is printed. A delivery may come twice, so an event may be shown twice.

Commands. --exec CMD runs "sh -c CMD" for every event instead of printing it: one at a time, in order, with the event as JSON on its
standard input and RTM_TOPIC, RTM_TYPE, RTM_URL and RTM_TIMESTAMP (ms) in its environment. If it fails, that is reported and the
next event has its turn, so that one bad event cannot hold up the others. With --exec-retry the bus delivers the event again
until the command succeeds, later and later, up to once a minute; others may overtake it. A command has --exec-timeout to
finish; one that takes longer than the bus waits for a delivery (ROUTEMASTER_TIMEOUT, mostly 20 s) is run again.

The exit status is 0 after Ctrl-C, or when the output is closed; 1 after a failure, also to unsubscribe; 2 for wrong usage.`,
		Example: `  rtm tail widgets -b http://127.0.0.1:17890 -t ROOT_KEY
  rtm tail widgets gadgets -b @staging --json | jq .url
  rtm tail orders -b @staging --exec 'curl -fsS -d @- localhost:3000/events'
  rtm tail orders -b @production --plain --listen 127.0.0.1:8080 --public-url https://me.tunnel.example/`,
		Args:              arguments(1, -1),
		ValidArgsFunction: t.bus.completeTopics(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.out, t.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			t.bus.stderr = t.errors
			if err := t.check(args); err != nil {
				return usageError{err}
			}
			return explain(t.run(cmd.Context()))
		},
	}
	t.bus.add(command)
	flags := command.Flags()
	flags.BoolVar(&t.json, "json", false, "print each event as one line of JSON, as it is delivered")
	flags.BoolVar(&t.create, "create", false, "create topics that do not exist; they stay")
	flags.StringVar(&t.exec.command, "exec", "", "run a `command` for every event, instead of printing it")
	flags.BoolVar(&t.exec.retry, "exec-retry", false, "have an event delivered again if its command fails")
	flags.DurationVar(&t.exec.timeout, "exec-timeout", 15*time.Second, "kill a command that runs longer, as failed")
	flags.IntVar(&t.latency, "latency", 0, "how many `ms` a batch waits for more events")
	flags.IntVar(&t.batchSize, "batch-size", 0, "most events of a delivery (default 100; with --exec always 1)")
	flags.StringVar(&t.listen, "listen", "127.0.0.1:0", "`HOST:PORT` to receive deliveries at")
	flags.StringVar(&t.publicURL, "public-url", "", "https `URL` at which the bus reaches that")
	flags.BoolVar(&t.plain, "plain", false, "listen without TLS, behind a proxy at the public URL that has it")
	flags.StringVar(&t.certFile, "cert", "", "PEM `file` of the certificate (default: one that is self-signed)")
	flags.StringVar(&t.keyFile, "key", "", "PEM `file` of its key")
	return command
}

// tail is a subscriber for as long as it runs.
type tail struct {
	bus    busFlags
	topics []string
	json   bool
	create bool
	exec   runner
	// latency is in ms.
	latency, batchSize int

	listen, publicURL string
	plain             bool
	certFile, keyFile string

	// out is for the events, errors for the rest.
	out, errors io.Writer

	receiver *receiver
	// events counts those that were handled, failed the commands that failed, arrived the deliveries, and refused those of
	// them that were refused.
	events, failed, arrived, refused atomic.Int64
}

func (t *tail) run(ctx context.Context) (err error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is closed
	defer release()
	defer catchBrokenPipes()()
	if t.receiver, err = t.newReceiver(); err != nil {
		return err
	}
	defer t.receiver.close()
	s, err := t.newSubscription(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := t.checkTopics(ctx, s.bus); err != nil {
		return err
	}

	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	t.receiver.start(t.receive(running, end))
	if err := s.begin(ctx); err != nil {
		return err
	}
	t.say("showing what is published to %s from now on; Ctrl-C ends it", strings.Join(t.topics, " "))
	var watching sync.WaitGroup
	watch := func(watch func(context.Context) error) {
		watching.Go(func() {
			if err := watch(running); err != nil {
				end(err)
			}
		})
	}
	watch(s.watch)
	watch(func(ctx context.Context) error { return awaitUnread(ctx, t.out) })
	<-running.Done()
	watching.Wait()
	if ctx.Err() == nil && !isClosed(context.Cause(running)) { // neither the user, nor the program that reads the output
		err = context.Cause(running)
	}
	return errors.Join(err, t.leave(context.WithoutCancel(ctx), s))
}

// leave unsubscribes, and then waits for the delivery under way.
func (t *tail) leave(ctx context.Context, s *tailSubscription) error {
	if err := s.end(ctx); err != nil {
		return err
	}
	patience := time.Second // whoever reads the output may have stopped
	if t.exec.command != "" {
		patience += t.exec.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t.receiver.finish(ctx)
	text := fmt.Sprintf("unsubscribed; events: %d", t.events.Load())
	if failed := t.failed.Load(); failed > 0 {
		text += fmt.Sprintf(", commands that failed: %d", failed)
	}
	t.say("%s", text)
	return nil
}

// say tells the user something that is no event.
func (t *tail) say(format string, values ...any) {
	fmt.Fprintln(t.errors, "rtm: "+showableLines(fmt.Sprintf(format, values...)))
}

// receive returns what is done with a delivery: it is acknowledged once its events are printed, or their commands have run.
// It ends the tail if the output fails.
func (t *tail) receive(ctx context.Context, end context.CancelCauseFunc) func(context.Context, []client.Event) error {
	printer := newPrinter(t.out, t.json)
	return func(_ context.Context, events []client.Event) (err error) {
		t.arrived.Add(1)
		defer func() {
			if err != nil {
				t.refused.Add(1)
			}
		}()
		if t.exec.command != "" {
			return t.execute(ctx, events)
		}
		if err := printer.print(events); err != nil {
			end(err)
			return err
		}
		t.events.Add(int64(len(events)))
		return nil
	}
}
