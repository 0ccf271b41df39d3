package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client/subscriber"
	"routemaster/internal/bus"
	"routemaster/internal/terminal"
)

var deadRows = row{
	use: "dead", short: "look at events that could not be delivered, redeliver or discard them", ofSubscriber: true,
	example: "  rtm dead list -b @production\n  rtm dead redeliver --all -b @production",
	rows: []row{
		{
			use: "list", short: "list the dead letters: what the bus has given up on",
			long: `List the dead letters of a subscriber, newest first: events that the bus does not deliver any more, because the receiver
refused them too often (attempts) or for good (refused), they were too old (age), a receipt rejected them, or they were
removed from the queue. There are none unless rtm sub set --dead-letters has switched them on.

Without a terminal each is a line with its id, when it died (ms since the Unix epoch), reason, the last status, error,
number of attempts, number of events and the receipt's note, separated by tabs.`,
			example: "  rtm dead list -b @production\n  rtm dead list --status 503 --since 24h -b @production\n" +
				"  rtm dead list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
			flags: addLetterFlags,
			json:  jsonArray,
			run:   listing(listLetters, "There are no dead letters.", "LETTER|DIED|REASON|RESULT||ATTEMPTS|EVENTS|NOTE", letterCells),
		},
		showEventsRow("rtm dead show", "a dead letter", "a dead letter as they would be delivered", func(c *call, from int) ([]json.RawMessage, error) {
			letter, err := c.subscriber.Letter(c.Context(), c.args[0], from)
			return letter.Events, err
		}),
		letterMove{
			name: "redeliver", done: "redelivered", short: "put dead letters back into the queue",
			long: `Put dead letters of a subscriber back into its queue, behind what is there: those with these ids, or all of them, oldest
first. They are delivered like any other batch, and may die again.`,
			one: (*subscriber.Subscriber).RedeliverLetter, all: (*subscriber.Subscriber).RedeliverLetters,
		}.row(),
		letterMove{
			name: "discard", done: "discarded", short: "remove dead letters for good", loses: true,
			long: `Remove dead letters of a subscriber for good: those with these ids, or all of them, oldest first. With --all it says how
many they are on a terminal, and asks first.`,
			one: (*subscriber.Subscriber).DiscardLetter, all: (*subscriber.Subscriber).DiscardLetters,
		}.row(),
	},
}

// letterFlags are the flags that say which dead letters are meant.
var letterFlags = []string{"reason", "status", "since", "before"}

func addLetterFlags(f *pflag.FlagSet) {
	f.String("reason", "", "only letters with this `REASON`: attempts, age, refused, rejected or removed")
	f.String("status", "", "only letters whose last attempt was answered with this `STATUS`, like 503, or none: with no answer")
	f.String("since", "", "only letters that died since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
	f.String("before", "", "only letters that died before this `TIME`")
}

// readLetterFilter reads the flags. Errors are [usageError]s.
func readLetterFilter(c *call) (filter subscriber.LetterFilter, err error) {
	filter.Reason = c.text("reason")
	var ok bool
	if filter.Status, ok = subscriber.ParseStatus(c.text("status")); !ok {
		return filter, wrongFlag("status", "like 503, or none")
	}
	now := time.Now()
	return filter, cmp.Or(c.pastTime("since", now, &filter.Since), c.pastTime("before", now, &filter.Before))
}

// pastTime reads the time of a flag, if it was given. Errors are [usageError]s.
func (c *call) pastTime(flag string, now time.Time, into *time.Time) error {
	if !c.given(flag) {
		return nil
	}
	at, ok := pointInTime(c.text(flag), now)
	if !ok {
		return wrongFlag(flag, "like 2026-01-31T12:00:00Z, in ms since the Unix epoch, or like 3h, for 3 hours ago")
	}
	*into = at
	return nil
}

// pointInTime reads a time: in RFC 3339, in ms since the Unix epoch, or how long ago it was.
func pointInTime(text string, now time.Time) (at time.Time, ok bool) {
	if ms, err := strconv.ParseUint(text, 10, 53); err == nil {
		return time.UnixMilli(int64(ms)), true
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	return bus.ParseTime(text)
}

func listLetters(c *call) ([]subscriber.Letter, error) {
	filter, err := readLetterFilter(c)
	if err != nil {
		return nil, err
	}
	return collect(c.subscriber.Letters(c.Context(), filter))
}

// letterCells are a letter. A terminal shows the status of the last attempt, or why there was none.
func letterCells(l subscriber.Letter) []any {
	status := strconv.Itoa(l.Status)
	result := cell{cmp.Or(l.Error, status), status}
	if l.Error == "" && l.Status == 0 {
		result.shown = "-"
	}
	return []any{l.ID, l.DiedAt, l.Reason, result, l.Error, l.Attempts, l.Events, l.Note}
}

// letterMove is the command rtm dead redeliver or rtm dead discard.
type letterMove struct {
	name, done, short, long string
	// loses is whether the letters are gone then.
	loses bool
	one   func(s *subscriber.Subscriber, ctx context.Context, id string) error
	all   func(s *subscriber.Subscriber, ctx context.Context, f subscriber.LetterFilter) iter.Seq2[subscriber.Moved, error]
}

func (m letterMove) row() row {
	return row{
		use: m.name + " [ID...]", short: m.short,
		long: m.long + `

With --all, --reason, --status, --since and --before say which, and --dry-run only counts them. It sends a request for
each 100 letters. What dies while it goes on stays, also what it has redelivered. If it stops in the middle, run it again.`,
		example: fmt.Sprintf("  rtm dead %s OFMKv1hQt3zq0Zb5AAAB -b @production\n  rtm dead %[1]s --all --reason age --since 24h --dry-run -b @production", m.name),
		flags: func(f *pflag.FlagSet) {
			addLetterFlags(f)
			f.Bool("all", false, "all dead letters, or those that --reason, --status, --since and --before leave")
			f.Bool("dry-run", false, "only say how many there are")
		},
		asks: m.loses,
		run:  m.run,
	}
}

func (m letterMove) run(c *call) error {
	switch all := c.is("all"); {
	case all && len(c.args) > 0:
		return usageError{errors.New("give ids or --all, not both")}
	case !all && len(c.args) == 0:
		return usageError{errors.New("give the ids of dead letters, or --all")}
	case !all && (slices.ContainsFunc(letterFlags, c.given) || c.is("dry-run")):
		return usageError{errors.New("--reason, --status, --since, --before and --dry-run are for --all")}
	case !all:
		return m.each(c)
	}
	filter, err := readLetterFilter(c)
	var found subscriber.Moved
	asks := m.loses && c.asking().asks(c.Command)
	if err == nil && (asks || c.is("dry-run")) {
		found, err = findLetters(c, filter)
	}
	switch {
	case err != nil:
		return err
	case c.is("dry-run"):
		return c.say("there are " + amount(found))
	case asks:
		if err := c.ask("to discard: " + amount(found)); err != nil {
			return err
		}
	}
	return m.every(c, filter)
}

// each moves letters by their ids, up to the first that fails.
func (m letterMove) each(c *call) error {
	return each(0, func(c *call, id string) (string, error) {
		if err := m.one(c.subscriber, c.Context(), id); err != nil {
			return "", fmt.Errorf("%s: %w", id, err)
		}
		return m.done + " " + id, nil
	})(c)
}

// every moves all letters of a filter. On a terminal it says after each request how far it is.
func (m letterMove) every(c *call, filter subscriber.LetterFilter) error {
	var last subscriber.Moved
	for moved, err := range m.all(c.subscriber, c.Context(), filter) {
		if err != nil {
			return fmt.Errorf("%w; %s %s before", err, m.done, amount(moved))
		}
		if last = moved; moved.Remaining > 0 && terminal.Is(c.ErrOrStderr()) {
			c.note("%s %s, %d letters remaining", m.done, amount(moved), moved.Remaining)
		}
	}
	return c.say(m.done + " " + amount(last))
}

// findLetters counts letters.
func findLetters(c *call, filter subscriber.LetterFilter) (found subscriber.Moved, err error) {
	for letter, err := range c.subscriber.Letters(c.Context(), filter) {
		if err != nil {
			return found, err
		}
		found.Letters++
		found.Events += letter.Events
	}
	return found, nil
}

// amount says how much was moved.
func amount(m subscriber.Moved) string {
	return fmt.Sprintf("%d dead letters with %d events", m.Letters, m.Events)
}
