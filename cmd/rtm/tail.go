package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/terminal"
)

func newTailCommand() *cobra.Command {
	var target busFlags
	var t tail
	command := &cobra.Command{
		Use:   "tail TOPIC [TOPIC...]",
		Short: "show the events of topics as they are published",
		Long: `Print the events of topics as they are published, until Ctrl-C. Only events that are published from now on are shown:
rtm events shows earlier ones of a topic with a history.

It is a view, not a delivery: tail does not subscribe, and the bus keeps nothing for it. The bus shows 100 events a
second of a topic at most, and 20 of one request; tail says how many others there were. If the connection is lost, tail
connects again until it succeeds, and says for how long it saw nothing. To get every event, subscribe, or read a topic's
history with rtm events -f.

Commands. --exec CMD runs "sh -c CMD" for every event instead of printing it: one at a time, with the event as JSON on
its standard input and RTM_TOPIC, RTM_TYPE, RTM_URL and RTM_TIMESTAMP (ms) in its environment. If it fails, that is
reported and the next event follows: an event is never repeated. --exec-timeout is how long a command may run. Events
wait in the connection meanwhile; if they are too many for it, the bus ends it. At the end, the command that runs may
finish; a second Ctrl-C does not wait for it.

The exit status is 0 after Ctrl-C, or when the output is closed; 1 after a failure, also if there is no such topic; 2
for wrong usage.`,
		Example: `  rtm tail widgets -b http://127.0.0.1:17890 -t TOKEN
  rtm tail widgets gadgets -b @staging --json | jq .url
  rtm tail orders -b @staging --exec 'curl -fsS -d @- localhost:3000/events'`,
		Args:              arguments(1, -1),
		ValidArgsFunction: row{use: "tail TOPIC...", kinds: []kind{topic}}.complete(&target),
		RunE: target.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			t.topics, t.out, t.errors = args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := t.validate(); err != nil {
				return usageError{err}
			}
			return t.run(cmd.Context(), c)
		}),
	}
	target.add(command)
	flags := command.Flags()
	flags.BoolVar(&t.json, "json", false, "print each event as one line of JSON, as it is delivered")
	flags.StringVar(&t.command, "exec", "", "run a `command` for every event, instead of printing it")
	flags.DurationVar(&t.timeout, "exec-timeout", 15*time.Second, "kill a command that runs longer, as failed")
	return command
}

// tail shows the events of topics while they are published.
type tail struct {
	topics []string
	json   bool
	// command, unless empty, runs for each event; timeout is how long it may take.
	command string
	timeout time.Duration
	// out gets the events, errors everything else.
	out, errors io.Writer

	// mu is held while one item of a stream is shown.
	mu      sync.Mutex
	printer *eventPrinter
	// starting is how many streams have not begun yet.
	starting int
	// handled counts events, failed the commands that failed.
	handled, failed atomic.Int64
}

// validate checks the arguments and flags. Its errors are for the user.
func (t *tail) validate() error {
	t.topics = slices.Compact(slices.Sorted(slices.Values(t.topics)))
	for _, topic := range t.topics {
		if err := bus.TopicName(topic).Validate(); err != nil {
			return fmt.Errorf("%q: %w", topic, err)
		}
	}
	switch {
	case t.command != "" && t.json:
		return errors.New("--json is for printing; with --exec the command gets the JSON")
	case t.timeout <= 0:
		return errors.New("--exec-timeout must be more than 0")
	}
	return nil
}

// run shows events until the context is done, the output or the terminal is closed, or the bus
// refuses a stream.
func (t *tail) run(ctx context.Context, c *client.Client) error {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is closed
	defer release()
	defer catchBrokenPipes()()
	t.printer, t.starting = newEventPrinter(t.out, t.json), len(t.topics)
	group, running := errgroup.WithContext(ctx)
	for _, topic := range t.topics {
		group.Go(func() error { return t.watch(running, c, topic) })
	}
	group.Go(func() error { return awaitClosed(running, t.out) })
	err := t.await(running, group)
	if err != nil && ctx.Err() == nil && !isClosed(err) { // neither the user, nor the reader of the output
		return t.explainUnknown(ctx, c, err)
	}
	text := fmt.Sprintf("ended; events: %d", t.handled.Load())
	if failed := t.failed.Load(); failed > 0 {
		text += fmt.Sprintf(", commands that failed: %d", failed)
	}
	t.say("%s", text)
	return nil
}

// await waits for the streams, and for the event that is being shown. It gives up on an output that
// is not read.
func (t *tail) await(running context.Context, group *errgroup.Group) error {
	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	<-running.Done()
	limit := time.Second
	if t.command != "" {
		limit += t.timeout
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		return context.Cause(running)
	}
}

// stream is the state of a topic's stream.
type stream struct {
	topic string
	// last is when the last event was published, and behind how long before it was shown.
	last   time.Time
	behind time.Duration
	// lost is since when events are missing; zero while it is live. reported is set once the user
	// knows why.
	lost     time.Time
	reported bool
}

// maxBehind is how long events may be under way. If the last one was, the bus has ended the stream
// for being read too slowly, long before that is seen here.
const maxBehind = 5 * time.Second

// watch shows the events of a topic.
func (t *tail) watch(ctx context.Context, c *client.Client, topic string) error {
	s := stream{topic: topic}
	for item, err := range c.Tail(ctx, topic) {
		if err == nil {
			err = t.show(ctx, &s, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// show prints an item of a stream.
func (t *tail) show(ctx context.Context, s *stream, item client.TailItem) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case item.Event != nil:
		s.last, s.behind = item.Event.Timestamp, time.Since(item.Event.Timestamp)
		return t.handle(ctx, *item.Event)
	case item.LeftOut > 0:
		t.say("%s: %d events are not shown: a live tail shows 100 a second, and 20 of one request", s.topic, item.LeftOut)
	case item.Lost != nil:
		t.showLost(s, item.Lost)
	case !s.lost.IsZero():
		t.say("%s: connected again; what was published in between, for %v, is not shown", s.topic, time.Since(s.lost).Round(10*time.Millisecond))
		s.lost, s.reported = time.Time{}, false
	default:
		if t.starting--; t.starting == 0 {
			t.say("showing what is published to %s from now on; Ctrl-C ends it", strings.Join(t.topics, " "))
		}
	}
	return nil
}

// handle prints an event, or runs the command for it.
func (t *tail) handle(ctx context.Context, event client.Event) error {
	if t.command != "" {
		t.execute(context.WithoutCancel(ctx), event)
		return nil
	}
	if err := t.printer.print(event); err != nil {
		return err
	}
	t.handled.Add(1)
	return nil
}

// showLost says why a stream was lost, once. If the bus has ended it, it probably begins again at
// once.
func (t *tail) showLost(s *stream, why error) {
	if s.lost.IsZero() {
		s.lost = time.Now()
		if s.behind > maxBehind {
			s.lost = s.last
			t.say("%s: events are read more slowly than they are published; those since %s are missing", s.topic, s.last.Format(time.TimeOnly))
		}
		s.behind = 0
	}
	if !s.reported && !errors.Is(why, client.ErrTailEnded) {
		t.say("%v; trying again", why)
		s.reported = true
	}
}

// say prints a message for the user.
func (t *tail) say(format string, values ...any) {
	fmt.Fprintln(t.errors, "rtm: "+terminal.EscapeLines(fmt.Sprintf(format, values...)))
}

// explainUnknown names the topics that do not exist, and suggests others, if that is why a stream
// was refused.
func (t *tail) explainUnknown(ctx context.Context, c *client.Client, refusal error) error {
	if !isNotFound(refusal) {
		return refusal
	}
	known, err := c.Topics(ctx)
	if err != nil {
		return refusal
	}
	names := namesOf(known, func(t client.Topic) string { return t.Name })
	var unknown []string
	for _, topic := range t.topics {
		if !slices.Contains(names, topic) {
			unknown = append(unknown, topic+suggest(topic, names))
		}
	}
	if len(unknown) == 0 {
		return refusal
	}
	return fmt.Errorf("there is no topic %s; a topic begins with the first publish or subscription to it", strings.Join(unknown, ", nor "))
}

// suggest names the topics that may have been meant.
func suggest(topic string, names []string) string {
	var near []string
	for _, name := range names {
		alike := bus.EditDistance(topic, name) <= max(1, len(topic)/4) || strings.HasPrefix(name, topic) || strings.HasPrefix(topic, name)
		if alike && bus.TopicName(name).Validate() == nil {
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.Sort(near)
	return " (did you mean " + strings.Join(near[:min(len(near), 5)], ", ") + "?)"
}
