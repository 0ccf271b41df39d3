package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/subscriber"
)

func newTopicHistoryCommand(bus *busFlags) *cobra.Command {
	var limits history.Limits
	var age time.Duration
	var size string
	var off, asJSON bool
	command := &cobra.Command{
		Use:   "history NAME",
		Short: "show, set or remove how much of what a topic receives is kept",
		Long: `Show how much of a topic's history the bus keeps. With --events, --age or --bytes, have it keep a history, or change its
limits: those that are not given are none. --off removes the history. Only the topic's publisher and root may set it;
every client may read it, also one that comes later: see rtm events.

Without a terminal the history is a line with its limits of events, age (ms) and bytes, the first and the last position,
when the oldest event was received (ms since the Unix epoch), and how many events and bytes there are, separated by
tabs. A limit that there is not is 0.`,
		Example: "  rtm topic history widgets -b @production\n  rtm topic history widgets --age 72h --bytes 50MB -b @production\n" +
			"  rtm topic history widgets --off -b @production",
		Args:              arguments(1, 1),
		ValidArgsFunction: bus.completeTopics(0, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if age%time.Millisecond != 0 || age < 0 {
				return wrongFlag("age", "like 72h, in whole ms")
			}
			if cmd.Flags().Changed("bytes") {
				n, err := readSize(size)
				if err != nil {
					return wrongFlag("bytes", "a size such as 50000000 or 50MB")
				}
				limits.Bytes = int64(n.(int))
			}
			h := history.Of(c, args[0])
			limits.Age = subscriber.Milliseconds(age.Milliseconds())
			switch sets := limitFlagGiven(cmd); {
			case off && sets:
				return wrongFlag("off", "alone")
			case off:
				return h.Delete(cmd.Context())
			case sets:
				return h.Put(cmd.Context(), limits)
			}
			info, err := h.Get(cmd.Context())
			if err != nil {
				return err
			}
			return printHistory(cmd.OutOrStdout(), info, asJSON)
		}),
	}
	flags := command.Flags()
	flags.Int64Var(&limits.Events, "events", 0, "keep the newest `COUNT` events, 10000000 at most")
	flags.DurationVar(&age, "age", 0, "keep events for this long, 1s to 720h")
	flags.StringVar(&size, "bytes", "", "keep so many bytes of events, 1KB to 1000MB")
	flags.BoolVar(&off, "off", false, "remove the history")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

func limitFlagGiven(cmd *cobra.Command) bool {
	flags := cmd.Flags()
	return flags.Changed("events") || flags.Changed("age") || flags.Changed("bytes")
}

func printHistory(w io.Writer, info history.Info, asJSON bool) error {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	limit := func(n int64, shown string) string {
		if n == 0 {
			return "-"
		}
		return shown
	}
	state := []string{number(info.First), number(info.Last)}
	stored := []string{number(info.StoredEvents), number(info.StoredBytes)}
	plain := append([]string{number(info.Events), number(int64(info.Age)), number(info.Bytes)}, state...)
	shown := append([]string{
		limit(info.Events, number(info.Events)), limit(int64(info.Age), info.Age.Duration().String()), limit(info.Bytes, number(info.Bytes)),
	}, state...)
	return list{
		json: asJSON, value: info,
		header: []string{"MAX EVENTS", "MAX AGE", "MAX BYTES", "FIRST", "LAST", "OLDEST", "EVENTS", "BYTES"},
		rows:   [][]string{append(append(shown, clock(info.OldestAt.Time)), stored...)},
		plain: func(w io.Writer) error {
			return lines(w, [][]string{append(append(plain, millis(info.OldestAt)), stored...)})
		},
	}.print(w)
}

// eventsReader reads a topic's history, and prints it.
type eventsReader struct {
	from, limit int64
	since       string
	follow      bool
}

func newEventsCommand() *cobra.Command {
	var bus busFlags
	var r eventsReader
	command := &cobra.Command{
		Use:   "events TOPIC",
		Short: "read what a topic has received, if it keeps a history",
		Long: `Read the history of a topic: a line of JSON for each event, oldest first, with its position and when it was received (ms
since the Unix epoch). In place of an event that the bus cannot read stands "unreadable":true. Nothing that is queued
changes, and no subscriber notices.

With -f new events follow as they come, until Ctrl-C. If events went before they were read, because the history may keep
no more, that is said on stderr. A topic keeps a history once its publisher has asked for that: see rtm topic history.`,
		Example: "  rtm events widgets --since 2h -b @production\n  rtm events widgets --from 4711 --limit 10 -b @production\n" +
			"  rtm events widgets -f --since 0s -b @production",
		Args:              arguments(1, 1),
		ValidArgsFunction: bus.completeTopics(0, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			start, err := r.start(cmd, time.Now())
			if err != nil {
				return err
			}
			return r.read(cmd, history.Of(c, args[0]), start)
		}),
	}
	bus.add(command)
	flags := command.Flags()
	flags.Int64Var(&r.from, "from", 0, "begin at this `POSITION`")
	flags.StringVar(&r.since, "since", "", "begin with what was received since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
	flags.Int64Var(&r.limit, "limit", 0, "print `COUNT` events at most")
	flags.BoolVarP(&r.follow, "follow", "f", false, "go on with new ones, until Ctrl-C")
	return command
}

// start reads where to begin. What is wrong is a [usageError].
func (r *eventsReader) start(cmd *cobra.Command, now time.Time) (start history.Start, err error) {
	switch flags := cmd.Flags(); {
	case flags.Changed("from") && flags.Changed("since"):
		return start, wrongFlag("since", "given without --from")
	case flags.Changed("from") && r.from < 1:
		return start, wrongFlag("from", "1 or more")
	case flags.Changed("limit") && r.limit < 1:
		return start, wrongFlag("limit", "1 or more")
	case r.since == "":
		return history.Start{Position: r.from}, nil
	}
	at, ok := pointInTime(r.since, now)
	if !ok {
		return start, wrongFlag("since", "like 2026-01-31T12:00:00Z, in ms since the Unix epoch, or like 3h, for 3 hours ago")
	}
	return history.Start{Since: at}, nil
}

// read prints events from a place on.
func (r *eventsReader) read(cmd *cobra.Command, h *history.History, start history.Start) error {
	ctx, left := cmd.Context(), r.limit
	for {
		page, err := h.Read(ctx, start, int(min(history.MaxPage, cmp.Or(left, history.MaxPage))))
		if r.follow && ctx.Err() != nil {
			return nil
		}
		if err != nil && !(r.follow && client.IsTemporary(err)) {
			return err
		}
		if err == nil {
			if start.Position != 0 && page.First > start.Position {
				fmt.Fprintf(cmd.ErrOrStderr(), "rtm: events %d to %d are not kept any more\n", start.Position, page.First-1)
			}
			for _, event := range page.Events {
				writeJSONLine(cmd.OutOrStdout(), event)
			}
			start = history.Start{Position: page.Next}
		}
		if left > 0 {
			if left -= int64(len(page.Events)); left == 0 {
				return nil
			}
		}
		isLast := len(page.Events) == 0 || page.Next > page.Last
		if isLast && !r.follow {
			return nil
		}
		if isLast && !wait(ctx, followInterval) {
			return nil
		}
	}
}
