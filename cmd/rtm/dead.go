package main

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client/subscriber"
	"routemaster/internal/bus"
)

func newDeadCommand() *cobra.Command {
	var to busFlags
	about := subscriberFlags{bus: &to}
	group := newGroup("dead", "look at events that could not be delivered, redeliver or discard them",
		"  rtm dead list -b @production\n  rtm dead redeliver --all -b @production",
		newDeadListCommand(&about), newDeadShowCommand(&about),
		newDeadMoveCommand(&about, redelivering), newDeadMoveCommand(&about, discarding))
	to.add(group)
	about.add(group)
	return group
}

// letterFlags say which dead letters are meant.
type letterFlags struct{ reason, status, since, before string }

func (f *letterFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.reason, "reason", "", "only those with this `REASON`: attempts, age, refused, rejected or removed")
	flags.StringVar(&f.status, "status", "", "only those whose last attempt was answered with this `STATUS`, like 503, or none: with no answer")
	flags.StringVar(&f.since, "since", "", "only those that died since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
	flags.StringVar(&f.before, "before", "", "only those that died before this `TIME`")
}

// filter reads the flags. What is wrong is a [usageError].
func (f *letterFlags) filter(now time.Time) (filter subscriber.LetterFilter, err error) {
	filter.Reason = f.reason
	var ok bool
	if filter.Status, ok = subscriber.ParseStatus(f.status); !ok {
		return filter, wrongFlag("status", "like 503, or none")
	}
	for _, flag := range []struct {
		name, text string
		into       *time.Time
	}{{"since", f.since, &filter.Since}, {"before", f.before, &filter.Before}} {
		if flag.text == "" {
			continue
		}
		at, ok := pointInTime(flag.text, now)
		if !ok {
			return filter, wrongFlag(flag.name, "like 2026-01-31T12:00:00Z, in ms since the Unix epoch, or like 3h, for 3 hours ago")
		}
		*flag.into = at
	}
	return filter, nil
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

func newDeadListCommand(about *subscriberFlags) *cobra.Command {
	var which letterFlags
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list the dead letters: what the bus has given up on",
		Long: `List the dead letters of a subscriber, newest first: events that the bus does not deliver any more, because the receiver
refused them too often (attempts) or for good (refused), they were too old (age), a receipt rejected them, or they were
removed from the queue. There are none unless rtm sub set --dead-letters has switched them on.

Without a terminal each is a line with its id, when it died (ms since the Unix epoch), reason, the last status, error,
number of attempts, number of events and the receipt's note, separated by tabs.`,
		Example: "  rtm dead list -b @production\n  rtm dead list --status 503 --since 24h -b @production\n" +
			"  rtm dead list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
		Args: arguments(0, 0),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, _ []string) error {
			filter, err := which.filter(time.Now())
			if err != nil {
				return err
			}
			letters, err := collect(s.Letters(cmd.Context(), filter))
			if err != nil {
				return err
			}
			var rows, table [][]string
			for _, l := range letters {
				counts := []string{strconv.Itoa(l.Attempts), strconv.Itoa(l.Events)}
				table = append(table, append([]string{l.ID, clock(l.DiedAt.Time), l.Reason, lastAnswer(l)}, append(counts, l.Note)...))
				rows = append(rows, append([]string{l.ID, millis(l.DiedAt), l.Reason, strconv.Itoa(l.Status), l.Error}, append(counts, l.Note)...))
			}
			return list{
				json: asJSON, value: append([]subscriber.Letter{}, letters...), empty: "There are no dead letters.",
				header: []string{"LETTER", "DIED", "REASON", "RESULT", "ATTEMPTS", "EVENTS", "NOTE"}, rows: table,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	which.add(command)
	addJSONFlag(command, &asJSON)
	return command
}

// lastAnswer is the status of the last attempt, or why there was none.
func lastAnswer(l subscriber.Letter) string {
	switch {
	case l.Error != "":
		return l.Error
	case l.Status != 0:
		return strconv.Itoa(l.Status)
	}
	return "-"
}

func newDeadShowCommand(about *subscriberFlags) *cobra.Command {
	return newShowEventsCommand(about, "rtm dead show", "a dead letter", "a dead letter as they would be delivered",
		func(ctx context.Context, s *subscriber.Subscriber, id string, from int) ([]json.RawMessage, error) {
			letter, err := s.Letter(ctx, id, from)
			return letter.Events, err
		})
}
