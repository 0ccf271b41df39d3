package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newReplayCommand() *cobra.Command {
	var bus busFlags
	about := subscriberFlags{bus: &bus}
	group := newGroup("replay", "have events of a topic's history delivered to you again",
		"  rtm replay start widgets --since 2h -b @production\n  rtm replay list -b @production",
		newReplayStartCommand(&about), newReplayListCommand(&about), newReplayCancelCommand(&about))
	bus.add(group)
	about.add(group)
	return group
}

// replayFlags say which events are to be replayed.
type replayFlags struct {
	from, to     int64
	since, until string
}

func newReplayStartCommand(about *subscriberFlags) *cobra.Command {
	var which replayFlags
	command := &cobra.Command{
		Use:   "start TOPIC",
		Short: "have a topic's history be delivered again, to one subscriber",
		Long: `Have events of a topic's history be delivered again, to you alone: from a position, or from when they were received, or
all that are kept. The topic has to keep a history, see rtm topic history, and you have to be subscribed to it. New
events are delivered in between. It returns at once: rtm replay list shows how far it is.`,
		Example: "  rtm replay start widgets --since 2h -b @production\n  rtm replay start widgets --from 4711 --to 4800 -b @production\n" +
			"  rtm replay start widgets --since 2h --subscriber shop--1 -b bus.example -t $ROOT_KEY",
		Args:              arguments(1, 1),
		ValidArgsFunction: about.bus.completeTopics(0, 1),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			events, err := which.events(cmd, time.Now())
			if err != nil {
				return err
			}
			started, err := s.StartReplay(cmd.Context(), args[0], events)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "replay %s of events %d to %d began\n", terminal.Escape(started.ID), started.From, started.To)
			return err
		}),
	}
	flags := command.Flags()
	flags.Int64Var(&which.from, "from", 0, "begin at this `POSITION`, instead of the oldest event that is kept")
	flags.StringVar(&which.since, "since", "", "begin with what was received since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
	flags.Int64Var(&which.to, "to", 0, "end at this `POSITION`, instead of the newest event")
	flags.StringVar(&which.until, "until", "", "end with what was received until this `TIME`")
	return command
}

// events reads the flags. What is wrong is a [usageError].
func (f *replayFlags) events(cmd *cobra.Command, now time.Time) (of subscriber.ReplayRange, err error) {
	flags := cmd.Flags()
	switch {
	case flags.Changed("from") && flags.Changed("since"):
		return of, wrongFlag("since", "given without --from")
	case flags.Changed("to") && flags.Changed("until"):
		return of, wrongFlag("until", "given without --to")
	case flags.Changed("from") && f.from < 1:
		return of, wrongFlag("from", "1 or more")
	case flags.Changed("to") && f.to < 1:
		return of, wrongFlag("to", "1 or more")
	}
	of.From, of.To = f.from, f.to
	for _, flag := range []struct {
		name, text string
		into       *time.Time
	}{{"since", f.since, &of.Since}, {"until", f.until, &of.Until}} {
		if !flags.Changed(flag.name) {
			continue
		}
		at, ok := pointInTime(flag.text, now)
		if !ok {
			return of, wrongFlag(flag.name, "like 2026-01-31T12:00:00Z, in ms since the Unix epoch, or like 3h, for 3 hours ago")
		}
		*flag.into = at
	}
	return of, nil
}

func newReplayListCommand(about *subscriberFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list the replays, and how far they are",
		Long: `List the replays of a subscriber that run, and those that ended in the last day, newest first. One that is done has copied
all to the queue, where events of it may still wait: see rtm queue list. Skipped are events that the history had
lost before their turn came.

Without a terminal each replay is a line with its id, its topic, when it began (ms since the Unix epoch), the first and
the last position, the numbers of events copied and skipped, its state and an error, separated by tabs.`,
		Example: "  rtm replay list -b @production\n  rtm replay list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
		Args:    arguments(0, 0),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, _ []string) error {
			replays, err := s.Replays(cmd.Context())
			if err != nil {
				return err
			}
			var rows, table [][]string
			for _, r := range replays {
				var progress []string
				for _, n := range []int64{r.From, r.To, r.Copied, r.Skipped} {
					progress = append(progress, strconv.FormatInt(n, 10))
				}
				progress = append(progress, r.State, r.Error)
				table = append(table, append([]string{r.ID, r.Topic, clock(r.CreatedAt.Time)}, progress...))
				rows = append(rows, append([]string{r.ID, r.Topic, millis(r.CreatedAt)}, progress...))
			}
			return list{
				json: asJSON, value: append([]subscriber.Replay{}, replays...), empty: "There are no replays.",
				header: []string{"REPLAY", "TOPIC", "BEGAN", "FROM", "TO", "COPIED", "SKIPPED", "STATE", "ERROR"}, rows: table,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}

func newReplayCancelCommand(about *subscriberFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "cancel ID",
		Short:   "have no more of a replay be copied; what was copied is delivered",
		Example: "  rtm replay cancel OFMKv1hQt3zq0Zb5AAAB -b @production",
		Args:    arguments(1, 1),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			if err := s.CancelReplay(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "cancelled "+terminal.Escape(args[0]))
			return err
		}),
	}
}
