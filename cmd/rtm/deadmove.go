package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

// letterMove is what rtm dead redeliver and rtm dead discard do.
type letterMove struct {
	name, done, short, long string
	// loses is whether the letters are gone then.
	loses bool
	one   func(s *subscriber.Subscriber, ctx context.Context, id string) error
	all   func(s *subscriber.Subscriber, ctx context.Context, f subscriber.LetterFilter) iter.Seq2[subscriber.Moved, error]
}

var (
	redelivering = letterMove{
		name: "redeliver", done: "redelivered", short: "put dead letters back into the queue",
		long: `Put dead letters of a subscriber back into its queue, behind what is there: those with these ids, or all of them, oldest
first. They are delivered like any other batch, and may die again.`,
		one: (*subscriber.Subscriber).RedeliverLetter, all: (*subscriber.Subscriber).RedeliverLetters,
	}
	discarding = letterMove{
		name: "discard", done: "discarded", short: "remove dead letters for good", loses: true,
		long: `Remove dead letters of a subscriber for good: those with these ids, or all of them, oldest first. With --all it says how
many they are on a terminal, and asks first.`,
		one: (*subscriber.Subscriber).DiscardLetter, all: (*subscriber.Subscriber).DiscardLetters,
	}
)

func newDeadMoveCommand(about *subscriberFlags, move letterMove) *cobra.Command {
	var which letterFlags
	var all, dryRun bool
	var asking consent
	command := &cobra.Command{
		Use:   move.name + " [ID...]",
		Short: move.short,
		Long: move.long + `

With --all, --reason, --status, --since and --before say which, and --dry-run only counts them. It sends a request for
each 100 letters. What dies while it goes on stays, also what it has redelivered. If it stops in the middle, run it again.`,
		Example: fmt.Sprintf("  rtm dead %s OFMKv1hQt3zq0Zb5AAAB -b @production\n  rtm dead %[1]s --all --reason age --since 24h --dry-run -b @production", move.name),
		Args: func(cmd *cobra.Command, args []string) error {
			switch filtered := which != (letterFlags{}); {
			case all && len(args) > 0:
				return usageError{errors.New("give ids or --all, not both")}
			case !all && len(args) == 0:
				return usageError{errors.New("give the ids of dead letters, or --all")}
			case !all && (filtered || dryRun):
				return usageError{errors.New("--reason, --status, --since, --before and --dry-run are for --all")}
			}
			return nil
		},
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			if !all {
				return move.each(cmd, s, args)
			}
			filter, err := which.filter(time.Now())
			switch {
			case err != nil:
				return err
			case dryRun:
				return countLetters(cmd, s, filter)
			case move.loses && asking.asks(cmd):
				found, err := findLetters(cmd, s, filter)
				if err != nil {
					return err
				}
				if err := asking.ask(cmd, "to discard: "+amount(found)); err != nil {
					return err
				}
			}
			return move.every(cmd, s, filter)
		}),
	}
	which.add(command)
	command.Flags().BoolVar(&all, "all", false, "all dead letters, or those that --reason, --status, --since and --before leave")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only say how many there are")
	if move.loses {
		asking.add(command)
	}
	return command
}

// each moves letters by their ids, up to the first that fails.
func (m letterMove) each(cmd *cobra.Command, s *subscriber.Subscriber, ids []string) error {
	for _, id := range ids {
		if err := m.one(s, cmd.Context(), id); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), m.done, terminal.Escape(id))
	}
	return nil
}

// every moves all letters of a filter. On a terminal it says after each request how far it is.
func (m letterMove) every(cmd *cobra.Command, s *subscriber.Subscriber, filter subscriber.LetterFilter) error {
	var last subscriber.Moved
	for moved, err := range m.all(s, cmd.Context(), filter) {
		if err != nil {
			return fmt.Errorf("%w; %s %s before", err, m.done, amount(moved))
		}
		if last = moved; moved.Remaining > 0 && terminal.Is(cmd.ErrOrStderr()) {
			fmt.Fprintf(cmd.ErrOrStderr(), "rtm: %s %s, %d letters remaining\n", m.done, amount(moved), moved.Remaining)
		}
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), m.done, amount(last))
	return err
}

// countLetters prints how many letters there are.
func countLetters(cmd *cobra.Command, s *subscriber.Subscriber, filter subscriber.LetterFilter) error {
	found, err := findLetters(cmd, s, filter)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "there are", amount(found))
	return err
}

// findLetters counts letters.
func findLetters(cmd *cobra.Command, s *subscriber.Subscriber, filter subscriber.LetterFilter) (found subscriber.Moved, err error) {
	for letter, err := range s.Letters(cmd.Context(), filter) {
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
