package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newQueueCommand() *cobra.Command {
	var bus busFlags
	about := subscriberFlags{bus: &bus}
	group := newGroup("queue", "look at what waits to be delivered, and remove from it",
		"  rtm queue list -b @production\n  rtm queue show OFMKv1hQt3zq0Zb5AAAB -b @production",
		newQueueListCommand(&about), newQueueShowCommand(&about), newQueueRemoveCommand(&about))
	bus.add(group)
	about.add(group)
	return group
}

func newQueueListCommand(about *subscriberFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list the batches that wait for you",
		Long: `List the queued batches of a subscriber, oldest first, at least those among the 20,000 oldest of the bus. A batch is
current while it takes in events, then waiting; delivering while it is under way, and retrying once that failed.

Without a terminal each batch is a line with its id, when it was opened, the number of attempts, the number of events,
its state and when the next attempt may begin (ms since the Unix epoch), separated by tabs.`,
		Example: "  rtm queue list -b @production\n  rtm queue list --subscriber shop--1 -b bus.example -t $ROOT_KEY",
		Args:    arguments(0, 0),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, _ []string) error {
			batches, err := collect(s.Batches(cmd.Context()))
			if err != nil {
				return err
			}
			var rows, table [][]string
			for _, b := range batches {
				counts := []string{strconv.Itoa(b.Attempts), strconv.Itoa(b.Events), b.State}
				table = append(table, append([]string{b.ID, clock(b.CreatedAt.Time)}, append(counts, clock(b.NextAt.Time))...))
				rows = append(rows, append([]string{b.ID, millis(b.CreatedAt)}, append(counts, millis(b.NextAt))...))
			}
			return list{
				json: asJSON, value: append([]subscriber.Batch{}, batches...), empty: "Nothing waits.",
				header: []string{"BATCH", "OPENED", "ATTEMPTS", "EVENTS", "STATE", "NEXT TRY"}, rows: table,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}

// millis is a time as scripts read it; empty if there is none.
func millis(t subscriber.Time) string { return milliseconds(t.Time) }

func newQueueShowCommand(about *subscriberFlags) *cobra.Command {
	return newShowEventsCommand(about, "rtm queue show", "a batch", "a queued batch as they will be delivered",
		func(ctx context.Context, s *subscriber.Subscriber, id string, from int) ([]client.Event, error) {
			batch, err := s.Batch(ctx, id, from)
			return batch.Events, err
		})
}

// newShowEventsCommand shows the events of what is named by an ID, given the command's whole name,
// and whose events these are, in short and at length.
func newShowEventsCommand[Event any](
	about *subscriberFlags, name, short, long string,
	read func(ctx context.Context, s *subscriber.Subscriber, id string, from int) ([]Event, error),
) *cobra.Command {
	var from int
	command := &cobra.Command{
		Use:     "show ID",
		Short:   "show the events of " + short + ", a line of JSON each",
		Long:    "Show the events of " + long + ", a line of JSON each: up to 1,000 from an index on.",
		Example: fmt.Sprintf("  %[1]s OFMKv1hQt3zq0Zb5AAAB -b @production\n  %[1]s OFMKv1hQt3zq0Zb5AAAB --from 1000 -b @production", name),
		Args:    arguments(1, 1),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			if from < 0 {
				return wrongFlag("from", "0 or more")
			}
			events, err := read(cmd.Context(), s, args[0], from)
			for _, event := range events {
				writeJSONLine(cmd.OutOrStdout(), event)
			}
			return err
		}),
	}
	command.Flags().IntVar(&from, "from", 0, "leave out the first `COUNT` events")
	return command
}

func newQueueRemoveCommand(about *subscriberFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "remove a batch that is not to be delivered",
		Long: `Remove a queued batch, unless it is being delivered. If the subscriber keeps dead letters, its events become one; else
they are lost.`,
		Example: "  rtm queue remove OFMKv1hQt3zq0Zb5AAAB -b @production",
		Args:    arguments(1, 1),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			if err := s.RemoveBatch(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "removed "+terminal.Escape(args[0]))
			return err
		}),
	}
}
