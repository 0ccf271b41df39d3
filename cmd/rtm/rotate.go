package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/terminal"
)

func newTokenRotateCommand(bus *busFlags) *cobra.Command {
	var keep bool
	command := &cobra.Command{
		Use:   "rotate OLD",
		Short: "change a client's token, and keep its subscription with all that is queued",
		Long: `Have the bus make another token of the same name, print it, move the subscription, its topics and all that is queued
to it, and then remove the old one. Publishing and deliveries go on meanwhile, in order.

With --keep the old token also works, for the same subscription, until the command is run again without --keep. In
between, give the service the new token. If the command is stopped, run it again: it continues where it stopped, and
prints the same token. OLD is the token, or the name of a client that has one token, or whose token is being changed.`,
		Example: "  rtm token rotate shop--1 --keep -b @production\n  rtm token rotate shop--1 -b bus.example -t $ROOT_KEY",
		Args:    arguments(1, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			tokens, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			old, err := pickToken(tokens, args[0])
			if errors.Is(err, errManyTokens) {
				old, err = args[0], nil // the bus knows which of them is being changed
			}
			if err != nil {
				return err
			}
			var failed error
			_, err = c.RotateToken(cmd.Context(), old, keep, func(token client.Token) {
				_, failed = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(token.Token))
			})
			if err != nil {
				return err
			}
			return failed
		}),
	}
	command.Flags().BoolVar(&keep, "keep", false, "keep the old token, too, until this is run again without --keep")
	return command
}
