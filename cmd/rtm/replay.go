package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client/subscriber"
)

var replayRows = row{
	use: "replay", short: "have events of a topic's history delivered to you again", ofSubscriber: true,
	example: "  rtm replay start widgets --since 2h -b @production\n  rtm replay list -b @production",
	rows: []row{
		{
			use: "start TOPIC", short: "have a topic's history be delivered again, to one subscriber", kinds: []kind{topic},
			long: `Have events of a topic's history be delivered again, to you alone: from a position, or from when they were received, or
all that are kept. The topic has to keep a history, see rtm topic history, and you have to be subscribed to it. New
events are delivered in between. It returns at once: rtm replay list shows how far it is.`,
			example: "  rtm replay start widgets --since 2h -b @production\n  rtm replay start widgets --from 4711 --to 4800 -b @production\n" +
				"  rtm replay start widgets --since 2h --subscriber shop--1 -b bus.example -t $ROOT_KEY",
			flags: func(f *pflag.FlagSet) {
				f.Int64("from", 0, "begin at this `POSITION`, instead of the oldest event that is kept")
				f.String("since", "", "begin with what was received since this `TIME`, in RFC 3339, in ms since the Unix epoch, or 3h for 3 hours ago")
				f.Int64("to", 0, "end at this `POSITION`, instead of the newest event")
				f.String("until", "", "end with what was received until this `TIME`")
			},
			run: saying(func(c *call) (string, error) {
				events, err := readRange(c, time.Now())
				if err != nil {
					return "", err
				}
				started, err := c.subscriber.StartReplay(c.Context(), c.args[0], events)
				return fmt.Sprintf("replay %s of events %d to %d began", started.ID, started.From, started.To), err
			}),
		},
		{
			use: "list", short: "list the replays, and how far they are",
			long: `List the replays of a subscriber that run, and those that ended in the last day, newest first. One that is done has copied
all to the queue, where events of it may still wait: see rtm queue list. Skipped are events that the history had
lost before their turn came.

Without a terminal each replay is a line with its id, its topic, when it began (ms since the Unix epoch), the first and
the last position, the numbers of events copied and skipped, its state and an error, separated by tabs.`,
			example: "  rtm replay list -b @production\n  rtm replay list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
			json:    jsonArray,
			run: listing(func(c *call) ([]subscriber.Replay, error) { return c.subscriber.Replays(c.Context()) },
				"There are no replays.", "REPLAY|TOPIC|BEGAN|FROM|TO|COPIED|SKIPPED|STATE|ERROR", func(r subscriber.Replay) []any {
					return []any{r.ID, r.Topic, r.CreatedAt, r.From, r.To, r.Copied, r.Skipped, r.State, r.Error}
				}),
		},
		{
			use: "cancel ID", short: "have no more of a replay be copied; what was copied is delivered",
			example: "  rtm replay cancel OFMKv1hQt3zq0Zb5AAAB -b @production",
			run: saying(func(c *call) (string, error) {
				return "cancelled " + c.args[0], c.subscriber.CancelReplay(c.Context(), c.args[0])
			}),
		},
	},
}

// readRange reads which events to replay. Errors are [usageError]s.
func readRange(c *call, now time.Time) (of subscriber.ReplayRange, err error) {
	of.From, of.To = c.int64("from"), c.int64("to")
	switch {
	case c.given("from") && c.given("since"):
		return of, wrongFlag("since", "given without --from")
	case c.given("to") && c.given("until"):
		return of, wrongFlag("until", "given without --to")
	case c.given("from") && of.From < 1:
		return of, wrongFlag("from", "1 or more")
	case c.given("to") && of.To < 1:
		return of, wrongFlag("to", "1 or more")
	}
	return of, cmp.Or(c.pastTime("since", now, &of.Since), c.pastTime("until", now, &of.Until))
}
