// Package tail shows the events of topics as they are published: it is a subscriber for as long as
// it runs. What it creates on the bus it notes on disk first, so that a later tail can remove it if
// this one is killed.
package tail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"routemaster/client"
	"routemaster/internal/selfsigned"
	"routemaster/internal/terminal"
)

// tail is a subscriber that runs.
type tail struct {
	Options
	receiver *Receiver
	// executing is locked while a command runs.
	executing sync.Mutex
	// handled counts events, failed the commands that failed, arrived the deliveries, and refused
	// those of them that were refused.
	handled, failed, arrived, refused atomic.Int64
}

// Run subscribes, and shows events until the context is done, the output is closed, the terminal is
// closed or the subscription is lost; then it unsubscribes. The options must be valid.
func Run(ctx context.Context, o Options) (err error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is closed
	defer release()
	defer catchBrokenPipes()()
	t := &tail{Options: o}
	if t.receiver, err = o.listen(); err != nil {
		return err
	}
	defer t.receiver.Close()
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
	t.receiver.Start(t.receive(running, end))
	if err := s.begin(ctx); err != nil {
		return err
	}
	t.warnOfTimeout()
	t.say("showing what is published to %s from now on; Ctrl-C ends it", strings.Join(t.Topics, " "))
	var watching sync.WaitGroup
	watch := func(watch func(context.Context) error) {
		watching.Go(func() {
			if err := watch(running); err != nil {
				end(err)
			}
		})
	}
	watch(s.watch)
	watch(func(ctx context.Context) error { return awaitClosed(ctx, t.Out) })
	<-running.Done()
	watching.Wait()
	if ctx.Err() == nil && !isClosed(context.Cause(running)) { // neither the user, nor the reader of the output
		err = context.Cause(running)
	}
	return errors.Join(err, t.leave(context.WithoutCancel(ctx), s))
}

// listen starts to listen for deliveries.
func (o *Options) listen() (*Receiver, error) {
	uuid := mark + rand.Text()
	if o.Plain {
		return newReceiver(o.Listen, uuid, nil)
	}
	var certificate tls.Certificate
	var err error
	if o.CertFile != "" {
		certificate, err = tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	} else {
		certificate, err = selfsigned.Certificate(o.Listen)
	}
	if err != nil {
		return nil, err
	}
	return newReceiver(o.Listen, uuid, &tls.Config{Certificates: []tls.Certificate{certificate}})
}

// leave unsubscribes, and then waits for the delivery in flight.
func (t *tail) leave(ctx context.Context, s *subscription) error {
	if err := s.end(ctx); err != nil {
		return err
	}
	timeout := time.Second // the reader of the output may have stopped reading
	if t.Exec.Command != "" {
		timeout += t.Exec.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t.receiver.finish(ctx)
	text := fmt.Sprintf("unsubscribed; events: %d", t.handled.Load())
	if failed := t.failed.Load(); failed > 0 {
		text += fmt.Sprintf(", commands that failed: %d", failed)
	}
	t.say("%s", text)
	return nil
}

// say prints a message for the user.
func (t *tail) say(format string, values ...any) {
	fmt.Fprintln(t.Errors, "rtm: "+terminal.EscapeLines(fmt.Sprintf(format, values...)))
}

// receive returns what handles a delivery: it is acknowledged once its events are printed, or their
// commands have run. It ends the tail if the output fails.
func (t *tail) receive(ctx context.Context, end context.CancelCauseFunc) func(context.Context, []client.Event) error {
	printer := newPrinter(t.Out, t.JSON)
	return func(_ context.Context, events []client.Event) (err error) {
		t.arrived.Add(1)
		defer func() {
			if err != nil {
				t.refused.Add(1)
			}
		}()
		if t.Exec.Command != "" {
			return t.execute(ctx, events)
		}
		if err := printer.print(events); err != nil {
			end(err)
			return err
		}
		t.handled.Add(int64(len(events)))
		return nil
	}
}
