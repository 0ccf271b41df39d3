package main

import (
	"slices"

	"routemaster/client"
	"routemaster/client/history"
)

var topicRows = row{
	use: "topic", short: "list and remove topics, and say how much of what they receive is kept",
	example: "  rtm topic list -b @production\n  rtm topic history widgets --age 72h -b @production\n  rtm topic del widgets -b @production",
	rows: []row{
		{
			use: "list", short: "list all topics",
			long: `List all topics: as a table on a terminal, else a line for each, with name, publisher, and how many events were ever
received, separated by tabs. With --json an array of objects with the fields name, publisher (empty while none has
published) and events.`,
			example: "  rtm topic list -b bus.example -t shop--1\n  rtm topic list -b @production --json",
			flags:   addShowTokensFlag,
			json:    jsonArray,
			run: func(c *call) error {
				topics, err := c.bus.Topics(c.Context())
				if err != nil {
					return err
				}
				name, err := c.naming()
				if err != nil {
					return err
				}
				return printList(c, topics, "There are no topics.", "TOPIC|PUBLISHER|EVENTS", func(t client.Topic) []any {
					return []any{t.Name, name(t.Publisher), t.Events}
				})
			},
		},
		historyRow,
		{
			use: "del NAME", short: "remove a topic of yours with all subscriptions to it; queued events are still delivered", kinds: []kind{topic},
			long: `Remove a topic of yours with its history and all subscriptions to it. Queued events are still delivered. It says on
stderr what goes, and on a terminal asks first.`,
			example: "  rtm topic del widgets -b bus.example -t warehouse--1",
			asks:    true,
			run:     deleteTopic,
		},
	},
}

func deleteTopic(c *call) error {
	name := c.args[0]
	subscriptions, err := c.bus.Subscriptions(c.Context())
	if err != nil {
		return err
	}
	to := 0
	for _, s := range subscriptions {
		if slices.Contains(s.Topics, name) {
			to++
		}
	}
	what := count(to, "subscription")
	if kept, err := history.Of(c.bus, name).Get(c.Context()); err == nil {
		what = "its history of " + count(int(kept.StoredEvents), "event") + ", and " + what
	} else if !isNotFound(err) {
		return err
	}
	if err := c.ask("with the topic goes " + what); err != nil {
		return err
	}
	return c.bus.DeleteTopic(c.Context(), name)
}
