package main

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/subscriber"
)

var historyRow = row{
	use: "history NAME", short: "show, set or remove how much of what a topic receives is kept", kinds: []kind{topic},
	long: `Show how much of a topic's history the bus keeps. With --events, --age or --bytes, have it keep a history, or change its
limits: those that are not given are none. --off removes the history. Only the topic's publisher and root may set it;
every client may read it, also one that comes later: see rtm events.

Without a terminal the history is a line with its limits of events, age (ms) and bytes, the first and the last position,
when the oldest event was received (ms since the Unix epoch), and how many events and bytes there are, separated by
tabs. A limit that there is not is 0.`,
	example: "  rtm topic history widgets -b @production\n  rtm topic history widgets --age 72h --bytes 50MB -b @production\n" +
		"  rtm topic history widgets --off -b @production",
	flags: func(f *pflag.FlagSet) {
		f.Int64("events", 0, "keep the newest `COUNT` events, 10000000 at most")
		f.Duration("age", 0, "keep events for this long, 1s to 720h")
		f.String("bytes", "", "keep so many bytes of events, 1KB to 1000MB")
		f.Bool("off", false, "remove the history")
	},
	json: jsonObject,
	run: func(c *call) error {
		limits, err := readLimits(c)
		if err != nil {
			return err
		}
		h := history.Of(c.bus, c.args[0])
		switch sets := c.given("events") || c.given("age") || c.given("bytes"); {
		case c.is("off") && sets:
			return wrongFlag("off", "alone")
		case c.is("off"):
			return h.Delete(c.Context())
		case sets:
			return h.Put(c.Context(), limits)
		}
		info, err := h.Get(c.Context())
		if err != nil {
			return err
		}
		return showHistory(c, info)
	},
}

// readLimits reads the flags. Errors are [usageError]s.
func readLimits(c *call) (limits history.Limits, err error) {
	age := c.duration("age")
	if age%time.Millisecond != 0 || age < 0 {
		return limits, wrongFlag("age", "like 72h, in whole ms")
	}
	limits.Events, limits.Age = c.int64("events"), subscriber.Milliseconds(age.Milliseconds())
	if c.given("bytes") {
		n, err := readSize(c.text("bytes"))
		if err != nil {
			return limits, wrongFlag("bytes", "a size such as 50000000 or 50MB")
		}
		limits.Bytes = int64(n.(int))
	}
	return limits, nil
}

func showHistory(c *call, info history.Info) error {
	limit := func(n int64, shown string) cell {
		if n == 0 {
			return cell{"-", "0"}
		}
		return cell{shown, number(n)}
	}
	l := tableOf([]history.Info{info}, "", "MAX EVENTS|MAX AGE|MAX BYTES|FIRST|LAST|OLDEST|EVENTS|BYTES", func(i history.Info) []any {
		return []any{limit(i.Events, number(i.Events)), limit(int64(i.Age), i.Age.Duration().String()), limit(i.Bytes, number(i.Bytes)),
			i.First, i.Last, i.OldestAt, i.StoredEvents, i.StoredBytes}
	})
	l.value = info
	return c.print(l)
}

var eventsRow = row{
	use: "events TOPIC", short: "read what a topic has received, if it keeps a history", kinds: []kind{topic},
	long: `Read the history of a topic: a line of JSON for each event, oldest first, with its position and when it was received (ms
since the Unix epoch). In place of an event that the bus cannot read stands "unreadable":true. Nothing that is queued
changes, and no subscriber notices.

With -f new events follow as they come, until Ctrl-C. If events went before they were read, because the history may keep
no more, that is said on stderr. A topic keeps a history once its publisher has asked for that: see rtm topic history.`,
	example: "  rtm events widgets --since 2h -b @production\n  rtm events widgets --from 4711 --limit 10 -b @production\n" +
		"  rtm events widgets -f --since 0s -b @production",
	flags: func(f *pflag.FlagSet) {
		f.Int64("from", 0, "begin at this `POSITION`")
		f.String("since", "", "begin with what was received since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
		f.Int64("limit", 0, "print `COUNT` events at most")
		f.BoolP("follow", "f", false, "go on with new ones, until Ctrl-C")
	},
	run: func(c *call) error {
		start, err := readStart(c, time.Now())
		if err != nil {
			return err
		}
		return readEvents(c, history.Of(c.bus, c.args[0]), start)
	},
}

// readStart reads where to begin. Errors are [usageError]s.
func readStart(c *call, now time.Time) (start history.Start, err error) {
	switch {
	case c.given("from") && c.given("since"):
		return start, wrongFlag("since", "given without --from")
	case c.given("from") && c.int64("from") < 1:
		return start, wrongFlag("from", "1 or more")
	case c.given("limit") && c.int64("limit") < 1:
		return start, wrongFlag("limit", "1 or more")
	}
	start.Position = c.int64("from")
	return start, c.pastTime("since", now, &start.Since)
}

// readEvents prints events from a place on.
func readEvents(c *call, h *history.History, start history.Start) error {
	ctx, left, follow := c.Context(), c.int64("limit"), c.is("follow")
	for {
		page, err := h.Read(ctx, start, int(min(history.MaxPage, cmp.Or(left, history.MaxPage))))
		if follow && ctx.Err() != nil {
			return nil
		}
		if err != nil && !(follow && client.IsTemporary(err)) {
			return err
		}
		if err == nil {
			if start.Position != 0 && page.First > start.Position {
				c.note("events %d to %d are not kept any more", start.Position, page.First-1)
			}
			for _, event := range page.Events {
				writeJSONLine(c.OutOrStdout(), event)
			}
			start = history.Start{Position: page.Next}
		}
		if left > 0 {
			if left -= int64(len(page.Events)); left == 0 {
				return nil
			}
		}
		isLast := len(page.Events) == 0 || page.Next > page.Last
		if isLast && !follow {
			return nil
		}
		if isLast && !wait(ctx, followInterval) {
			return nil
		}
	}
}
