package main

import (
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/history"
)

func newTopicCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("topic", "list and remove topics, and say how much of what they receive is kept",
		"  rtm topic list -b @production\n  rtm topic history widgets --age 72h -b @production\n  rtm topic del widgets -b @production",
		newTopicListCommand(&bus), newTopicHistoryCommand(&bus), newTopicDelCommand(&bus))
	bus.add(group)
	return group
}

func newTopicListCommand(bus *busFlags) *cobra.Command {
	var asJSON, show bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list all topics",
		Long: `List all topics: as a table on a terminal, else a line for each, with name, publisher, and how many events were ever
received, separated by tabs. With --json an array of objects with the fields name, publisher (empty while nobody has
published) and events.`,
		Example: "  rtm topic list -b bus.example -t shop--1\n  rtm topic list -b @production --json",
		Args:    arguments(0, 0),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			topics, err := c.Topics(cmd.Context())
			if err != nil {
				return err
			}
			name, err := bus.naming(cmd, c, show)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, topic := range topics {
				rows = append(rows, []string{topic.Name, name(topic.Publisher), strconv.FormatInt(topic.Events, 10)})
			}
			return list{
				json: asJSON, value: append([]client.Topic{}, topics...),
				empty: "There are no topics.", header: []string{"TOPIC", "PUBLISHER", "EVENTS"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	addShowTokensFlag(command, &show)
	return command
}

func newTopicDelCommand(bus *busFlags) *cobra.Command {
	var asking consent
	command := &cobra.Command{
		Use:   "del NAME",
		Short: "remove a topic of yours with all subscriptions to it; queued events are still delivered",
		Long: `Remove a topic of yours with its history and all subscriptions to it. Queued events are still delivered. It says on
stderr what goes, and on a terminal asks first.`,
		Example:           "  rtm topic del widgets -b bus.example -t warehouse--1",
		Args:              arguments(1, 1),
		ValidArgsFunction: bus.completeTopics(0, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			subscriptions, err := c.Subscriptions(cmd.Context())
			if err != nil {
				return err
			}
			to := 0
			for _, s := range subscriptions {
				if slices.Contains(s.Topics, args[0]) {
					to++
				}
			}
			what := count(to, "subscription")
			if kept, err := history.Of(c, args[0]).Get(cmd.Context()); err == nil {
				what = "its history of " + count(int(kept.StoredEvents), "event") + ", and " + what
			} else if !isNotFound(err) {
				return err
			}
			if err := asking.ask(cmd, "with the topic goes "+what); err != nil {
				return err
			}
			return c.DeleteTopic(cmd.Context(), args[0])
		}),
	}
	asking.add(command)
	return command
}
