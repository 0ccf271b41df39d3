package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"routemaster/client"
)

func newTokenCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("token", "let clients in, and keep them out: for the operator, with the root key",
		"  rtm token add shop -b bus.example -t $ROOT_KEY\n  rtm token list -b @production",
		newTokenAddCommand(&bus), newTokenDelCommand(&bus), newTokenListCommand(&bus))
	bus.add(group)
	return group
}

func newTokenAddCommand(bus *busFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "add SERVICE [TOKEN]",
		Short:   "add a token for a service, and print it; without TOKEN the bus makes one",
		Example: "  rtm token add shop -b bus.example -t $ROOT_KEY\n  rtm token add shop shop--1 -b @production",
		Args:    arguments(1, 2),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			token := ""
			if len(args) == 2 {
				token = args[1]
			}
			added, err := c.AddToken(cmd.Context(), args[0], token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), added.Token)
			return err
		}),
	}
}

func newTokenDelCommand(bus *busFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "del TOKEN",
		Short:   "remove a token and its subscriber; that it is not there is no error",
		Example: "  rtm token del shop--1 -b bus.example -t $ROOT_KEY",
		Args:    arguments(1, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return c.DeleteToken(cmd.Context(), args[0])
		}),
	}
}

func newTokenListCommand(bus *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list all tokens",
		Long: `List all tokens: as a table on a terminal, else a line for each, with the token, a tab, and its name. With --json
an array of objects with the fields name and token.`,
		Example: "  rtm token list -b bus.example -t $ROOT_KEY\n  rtm token list -b @production --json",
		Args:    arguments(0, 0),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			tokens, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			const none = "No tokens have been added."
			rows := [][]string{}
			for _, token := range tokens {
				rows = append(rows, []string{token.Token, token.Name})
			}
			return list{
				json: asJSON, value: append([]client.Token{}, tokens...), empty: none, header: []string{"TOKEN", "NAME"}, rows: rows,
				plain: func(w io.Writer) error {
					if len(rows) == 0 {
						rows = [][]string{{none}}
					}
					return lines(w, rows)
				},
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}
