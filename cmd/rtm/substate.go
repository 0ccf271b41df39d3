package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
	"routemaster/internal/top"
)

var subShowRow = row{
	use: "show", short: "show your subscription with its options and its state", ofSubscriber: true,
	long: `Show what a subscriber has set and the state of its deliveries: as a table on a terminal, else a line for each, with
name and value separated by a tab. The last line says which delivery failed last, or which test event, and what to do about
it. With --json the object that the bus sends, without that.`,
	example: "  rtm sub show -b @production\n  rtm sub show --subscriber shop--1 -b bus.example -t $ROOT_KEY",
	json:    jsonObject,
	run: func(c *call) error {
		info, err := c.subscriber.Info(c.Context())
		if err != nil {
			return err
		}
		failure, err := lastFailure(c.Context(), c.subscriber)
		if err != nil {
			return err
		}
		return c.show(info, append(infoRows(info, time.Now()), []string{"last failure", failure}))
	},
}

var subPauseRow = row{
	use: "pause", short: "have nothing delivered until you resume; events wait", ofSubscriber: true,
	example: "  rtm sub pause -b @production\n  rtm sub pause --for 2h -b @production",
	flags:   func(f *pflag.FlagSet) { f.Duration("for", 0, "resume by itself after this time, such as 2h") },
	run: func(c *call) error {
		var until time.Time
		if c.given("for") {
			period := c.duration("for")
			if period < time.Second || period > 365*24*time.Hour {
				return wrongFlag("for", "1s to 8760h")
			}
			until = time.Now().Add(period)
		}
		return c.subscriber.Pause(c.Context(), until)
	},
}

var subResumeRow = row{
	use: "resume", short: "end a pause", ofSubscriber: true,
	example: "  rtm sub resume -b @production",
	run:     func(c *call) error { return c.subscriber.Resume(c.Context()) },
}

var subRetryRow = row{
	use: "retry", short: "be tried at once, after deliveries have failed", ofSubscriber: true,
	long: `Have the bus deliver at once, when what made deliveries fail is corrected: else it tries a failing subscriber once a
minute at worst. After one success all that waits follows.`,
	example: "  rtm sub retry -b @production",
	run:     func(c *call) error { return c.subscriber.Retry(c.Context()) },
}

var subTestRow = row{
	use: "test", short: "have a test event delivered to you", ofSubscriber: true,
	long: `Have the bus deliver one test event (of the type noop, with the data {"test":true}) to your callback at once, also while
you are paused or it fails, as any other delivery is made. It is tried once.

With --wait, wait for the result and print it, with what to do about it; and say on stderr what holds up other events,
such as a pause. It fails as soon as the bus knows that none of its workers runs, 30 s after the last one was heard of. The
exit status is 1 unless the event was acknowledged.
Without --wait the id of its batch is printed, by which rtm attempts --batch finds the result.`,
	example: "  rtm sub test --wait -b @production\n  rtm sub test -b bus.example -t shop--1",
	flags:   func(f *pflag.FlagSet) { f.Bool("wait", false, "wait for the result, and print it") },
	run: func(c *call) error {
		batch, err := c.subscriber.Test(c.Context())
		switch {
		case err != nil:
			return err
		case c.is("wait"):
			return awaitTest(c, batch)
		}
		return c.say(batch)
	},
}

// infoRows are the rows of rtm sub show. The uuid is a secret, and not among them.
func infoRows(info subscriber.Info, now time.Time) [][]string {
	limit := func(n int, unit string) string {
		if n == 0 {
			return "no limit"
		}
		return strconv.Itoa(n) + " " + unit
	}
	status := info.Status
	return [][]string{
		{"callback", info.Callback},
		{"topics", strings.Join(info.Topics, " ")},
		{"batches", fmt.Sprintf("up to %d events, after %v", info.Max, info.Timeout.Duration())},
		{"max bytes", limit(info.MaxBytes, "bytes in a delivery")},
		{"requests", limit(info.MaxRequestsPerMinute, "a minute")},
		{"events", limit(info.MaxEventsPerMinute, "a minute")},
		{"lanes", showLanes(info)},
		{"strict order", strconv.FormatBool(info.StrictOrder)},
		{"partial", strconv.FormatBool(info.Partial)},
		{"kept", showKept(info)},
		{"gap notices", strconv.FormatBool(info.GapNotices)},
		{"dead letters", showDeadLetters(info.DeadLetters)},
		{"log attempts", info.LogAttempts},
		{"queued", number(status.Queued) + " events"},
		{"dead", fmt.Sprintf("%d events in %d letters", status.DeadLetters.Events, status.DeadLetters.Letters)},
		{"lost", showGap(status.Gap)},
		{"health", strconv.Itoa(status.Health)},
		{"last attempt", clock(status.LastAttemptedAt.Time)},
		{"state", cmp.Or(status.Explain(now), "nothing holds deliveries up")},
	}
}

// lastFailure describes the last recorded attempt that failed: when it was, whether it delivered a
// test event, and the remedy.
func lastFailure(ctx context.Context, s *subscriber.Subscriber) (string, error) {
	for attempt, err := range s.Attempts(ctx, subscriber.AttemptFilter{}) {
		if err != nil {
			return "", err
		}
		if attempt.Outcome != "acknowledged" {
			return clock(attempt.At.Time) + " " + ofTest(attempt) + resultLine(attempt), nil
		}
	}
	return "none on record", nil
}

// ofTest marks an attempt to deliver a test event, which says nothing of other deliveries.
func ofTest(a subscriber.Attempt) string {
	if a.Test {
		return "test event "
	}
	return ""
}

// showLanes shows the number of lanes, and the key that assigns events to them.
func showLanes(info subscriber.Info) string {
	if info.Lanes == 1 {
		return "one"
	}
	return fmt.Sprintf("%d, by %s", info.Lanes, terminal.Escape(info.OrderKey))
}

// showKept shows the limits on the queue.
func showKept(info subscriber.Info) string {
	var limits []string
	if info.KeepAge > 0 {
		limits = append(limits, "for "+info.KeepAge.Duration().String())
	}
	if info.KeepEvents > 0 {
		limits = append(limits, fmt.Sprintf("%d events", info.KeepEvents))
	}
	return cmp.Or(strings.Join(limits, ", "), "all that waits")
}

// showGap shows the content of the next gap notice.
func showGap(gap *subscriber.Gap) string {
	if gap == nil {
		return "nothing that is not told"
	}
	return fmt.Sprintf("%d events in %d batches (%s)", gap.Events, gap.Batches, terminal.Escape(gap.Reason))
}

// showDeadLetters writes when events are given up, as --dead-letters reads it.
func showDeadLetters(d *subscriber.DeadLetters) string {
	if d == nil {
		return "off"
	}
	text := "on"
	if d.Attempts > 0 {
		text += fmt.Sprintf(" attempts=%d", d.Attempts)
	}
	if d.Age > 0 {
		text += fmt.Sprintf(" age=%v", d.Age.Duration())
	}
	return text
}

// testTimeout is longer than the bus usually lets a delivery take.
const testTimeout = 40 * time.Second

// sayWhatWaits prints on stderr the reasons for which events other than a test event wait.
func sayWhatWaits(c *call) error {
	info, err := c.subscriber.Info(c.Context())
	if err != nil {
		return err
	}
	if info.Status.IsPaused(time.Now()) || info.Status.ThrottledUntil.After(time.Now()) || info.Status.Blocked > 0 {
		c.note("other events wait: the subscriber is %s", info.Status.Explain(time.Now()))
	}
	return nil
}

// awaitTest waits for the attempt to deliver a test event, and prints it.
func awaitTest(c *call, batch string) error {
	ctx, cancel := context.WithTimeout(c.Context(), testTimeout)
	defer cancel()
	for looked := time.Now(); ; {
		attempts, err := collect(c.subscriber.Attempts(ctx, subscriber.AttemptFilter{Batch: batch}))
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if len(attempts) > 0 {
			return errors.Join(reportTest(c, attempts[0]), sayWhatWaits(c))
		}
		if time.Since(looked) > followInterval {
			looked = time.Now()
			if _, found := top.NewReader(c.bus).Find(ctx, "no-worker"); found {
				return errors.New("the test event waits: no worker of the bus runs, so nothing is delivered; its operator must start one")
			}
		}
		if !wait(ctx, followInterval/5) {
			break
		}
	}
	if c.Context().Err() != nil {
		return c.Context().Err()
	}
	return errors.New("no result: does the bus keep attempts (ROUTEMASTER_ATTEMPTS_KEPT)?")
}

func reportTest(c *call, a subscriber.Attempt) error {
	line := resultLine(a)
	if a.Outcome != "acknowledged" {
		return errors.New("the test event was not delivered: " + line)
	}
	return c.say("the test event was delivered: " + line)
}
