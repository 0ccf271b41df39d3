package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/subscriber"
)

var attemptsRow = row{
	use: "attempts", short: "show the last attempts to deliver, and why they failed", ofSubscriber: true,
	long: `Show the last attempts of the bus to deliver to you, newest first, with what each came to and what to do about it.
The bus keeps the last 20 failures, unless its operator or rtm sub set --log-attempts says otherwise.

With -f those that are there are printed oldest first, a line each, and then each new one, until Ctrl-C.

With the root key, --subscriber says whose attempts are meant, and more is shown: the text of each error, and the
beginning of each answer. Clients see that only if their endpoint has a public address.

Without a terminal each attempt is a line with time (ms since the Unix epoch), batch, number of the attempt, number of
events, outcome, status, error, duration (ms) and when it is tried again, separated by tabs. --json prints an array;
with -f an object a line.`,
	example: "  rtm attempts -b @production\n  rtm attempts --batch OFMKv1hQt3zq0Zb5AAAB -b @production\n" +
		"  rtm attempts -f --subscriber shop--1 -b bus.example -t $ROOT_KEY",
	flags: func(f *pflag.FlagSet) {
		f.String("batch", "", "only attempts of the batch with this `ID`")
		f.String("outcome", "", "only attempts with this outcome: acknowledged, partial, failed or dead")
		f.BoolP("follow", "f", false, "go on with new ones, until Ctrl-C")
	},
	json: jsonArray,
	run: func(c *call) error {
		filter := subscriber.AttemptFilter{Batch: c.text("batch"), Outcome: c.text("outcome")}
		if c.is("follow") {
			return followAttempts(c, filter)
		}
		attempts, err := collect(c.subscriber.Attempts(c.Context(), filter))
		if err != nil {
			return err
		}
		return printList(c, attempts, "There are no attempts on record: none failed, or nothing was published for you.",
			"AT|BATCH|TRY|EVENTS|RESULT||||NEXT TRY|*WHAT TO DO", attemptCells)
	},
}

// collect reads a list of the bus.
func collect[T any](elements iter.Seq2[T, error]) (all []T, err error) {
	for element, err := range elements {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

// attemptCells are the cells of an attempt. Scripts read the parts of the result, and not the
// remedy.
func attemptCells(a subscriber.Attempt) []any {
	return []any{
		a.At, a.Batch, a.Attempt, a.Events, cell{a.Result(), a.Outcome}, a.Status, a.Error, int64(a.Duration), a.RetryAt, whatToDo(a),
	}
}

// whatToDo is the remedy of an attempt, with the bus's detail and excerpt.
func whatToDo(a subscriber.Attempt) string {
	text := a.Remedy()
	for _, more := range []string{a.Detail, a.Excerpt} {
		if more != "" {
			text += " [" + more + "]"
		}
	}
	return cmp.Or(text, "-")
}

// attemptLine is an attempt as a sentence.
func attemptLine(a subscriber.Attempt) string {
	return fmt.Sprintf("%s batch %s, attempt %d, %d events: %s", clock(a.At.Time), a.Batch, a.Attempt, a.Events, resultLine(a))
}

// resultLine is the result of an attempt, with its remedy.
func resultLine(a subscriber.Attempt) string {
	line := a.Result()
	if what := whatToDo(a); what != "-" {
		line += "; " + what
	}
	return line
}

// followInterval is how often the bus is asked for new attempts, and for the result of a test.
const followInterval = time.Second

// followAttempts prints attempts as they come, until Ctrl-C.
func followAttempts(c *call, filter subscriber.AttemptFilter) error {
	known := map[string]bool{}
	for {
		fresh, err := newAttempts(c.Context(), c.subscriber, filter, known)
		if c.Context().Err() != nil {
			return nil
		}
		if err != nil && !client.IsTemporary(err) {
			return err
		}
		for _, a := range fresh {
			if c.is("json") {
				writeJSONLine(c.OutOrStdout(), a)
			} else {
				_ = c.say(attemptLine(a))
			}
		}
		if !wait(c.Context(), followInterval) {
			return nil
		}
	}
}

// newAttempts returns the attempts that are not in known, oldest first. It reduces known to the
// attempts that the bus still has.
func newAttempts(
	ctx context.Context, s *subscriber.Subscriber, filter subscriber.AttemptFilter, known map[string]bool,
) (fresh []subscriber.Attempt, err error) {
	attempts, err := collect(s.Attempts(ctx, filter))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, a := range attempts {
		name := fmt.Sprint(a.At.UnixMilli(), " ", a.Batch, " ", a.Attempt)
		seen[name] = true
		if !known[name] {
			fresh = append(fresh, a)
		}
	}
	clear(known)
	maps.Copy(known, seen)
	slices.Reverse(fresh)
	return fresh, nil
}

// wait waits, and reports false if the context is done first.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
