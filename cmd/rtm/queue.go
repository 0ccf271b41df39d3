package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/subscriber"
)

var queueRows = row{
	use: "queue", short: "look at what waits to be delivered, and remove from it", ofSubscriber: true,
	example: "  rtm queue list -b @production\n  rtm queue show OFMKv1hQt3zq0Zb5AAAB -b @production",
	rows: []row{
		{
			use: "list", short: "list the batches that wait for you",
			long: `List the queued batches of a subscriber, oldest first, at least those among the 20,000 oldest of the bus. A batch is
current while it takes in events, then waiting; delivering while it is under way, and retrying once that failed.

Without a terminal each batch is a line with its id, when it was opened, the number of attempts, the number of events,
its state and when the next attempt may begin (ms since the Unix epoch), separated by tabs.`,
			example: "  rtm queue list -b @production\n  rtm queue list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
			json:    jsonArray,
			run: listing(func(c *call) ([]subscriber.Batch, error) { return collect(c.subscriber.Batches(c.Context())) },
				"Nothing waits.", "BATCH|OPENED|ATTEMPTS|EVENTS|STATE|NEXT TRY", func(b subscriber.Batch) []any {
					return []any{b.ID, b.CreatedAt, b.Attempts, b.Events, b.State, b.NextAt}
				}),
		},
		showEventsRow("rtm queue show", "a batch", "a queued batch as they will be delivered", func(c *call, from int) ([]client.Event, error) {
			batch, err := c.subscriber.Batch(c.Context(), c.args[0], from)
			return batch.Events, err
		}),
		{
			use: "remove ID", short: "remove a batch that is not to be delivered",
			long: `Remove a queued batch, unless it is being delivered. If the subscriber keeps dead letters, its events become one; else
they are lost.`,
			example: "  rtm queue remove OFMKv1hQt3zq0Zb5AAAB -b @production",
			run: saying(func(c *call) (string, error) {
				return "removed " + c.args[0], c.subscriber.RemoveBatch(c.Context(), c.args[0])
			}),
		},
	},
}

// showEventsRow is a command that shows the events of a batch or letter, given by its ID. Name is
// the command's whole name; short and long describe whose events these are.
func showEventsRow[Event any](name, short, long string, read func(c *call, from int) ([]Event, error)) row {
	return row{
		use: "show ID", short: "show the events of " + short + ", a line of JSON each",
		long:    "Show the events of " + long + ", a line of JSON each: up to 1,000 from an index on.",
		example: fmt.Sprintf("  %[1]s OFMKv1hQt3zq0Zb5AAAB -b @production\n  %[1]s OFMKv1hQt3zq0Zb5AAAB --from 1000 -b @production", name),
		flags:   func(f *pflag.FlagSet) { f.Int("from", 0, "leave out the first `COUNT` events") },
		run: func(c *call) error {
			if c.int("from") < 0 {
				return wrongFlag("from", "0 or more")
			}
			events, err := read(c, c.int("from"))
			for _, event := range events {
				writeJSONLine(c.OutOrStdout(), event)
			}
			return err
		},
	}
}
