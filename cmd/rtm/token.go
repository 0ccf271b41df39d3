package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newTokenCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("token", "let clients in, and keep them out: for the operator, with the root key",
		"  rtm token add shop -b bus.example -t $ROOT_KEY\n  rtm token list -b @production",
		newTokenAddCommand(&bus), newTokenDelCommand(&bus), newTokenListCommand(&bus), newTokenRotateCommand(&bus))
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
			_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(added.Token))
			return err
		}),
	}
}

func newTokenDelCommand(bus *busFlags) *cobra.Command {
	var asking consent
	command := &cobra.Command{
		Use:   "del TOKEN",
		Short: "remove a token and its subscriber",
		Long: `Remove a token and its subscriber, with all that waits to be delivered to it. It says on stderr what goes, and on a
terminal asks first. Instead of the token, it takes the name of a client that has one token only. rtm token rotate
replaces a token, and keeps the subscriber, also when the old token that rotate --keep has left is removed.`,
		Example: "  rtm token del shop -b bus.example -t $ROOT_KEY\n  rtm token del shop--1 --yes -b @production",
		Args:    arguments(1, 1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			// The bus responds in the same way whether the token was there or not.
			tokens, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			token, err := pickToken(tokens, args[0])
			if err != nil {
				return err
			}
			what, err := describeRemoval(subscriber.Of(c, token).Info(cmd.Context()))
			if err != nil {
				return err
			}
			kept, err := keepsSubscription(cmd.Context(), c, tokens, token)
			if err != nil {
				return err
			}
			if kept {
				what = "no subscription: another token of its client has that"
			}
			if err := asking.ask(cmd, "with the token goes "+what); err != nil {
				return err
			}
			return c.DeleteToken(cmd.Context(), token)
		}),
	}
	asking.add(command)
	return command
}

// errManyTokens says that a name does not say which token is meant.
var errManyTokens = errors.New("has several tokens")

// pickToken returns the token that is meant by a text: it is the token or, if there is no such
// token, the name of a client that has one token only.
func pickToken(tokens []client.Token, meant string) (token string, err error) {
	for _, t := range tokens {
		switch {
		case t.Token == meant:
			return meant, nil
		case t.Name != meant:
		case token != "":
			err = fmt.Errorf("%s %w: give the one that is meant; `rtm token list --show-tokens` lists them", terminal.Escape(meant), errManyTokens)
		default:
			token = t.Token
		}
	}
	if token == "" {
		err = errors.New("there is no such token, nor a client of that name; `rtm token list` shows whose there are")
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

// keepsSubscription reports whether the subscription that one of all tokens speaks for stays
// without it: the token was rotated, and the one in its place is still there.
func keepsSubscription(ctx context.Context, c *client.Client, tokens []client.Token, token string) (bool, error) {
	subscriptions, err := c.Subscriptions(ctx)
	if err != nil {
		return false, err
	}
	names := map[string]string{}
	for _, t := range tokens {
		names[t.Token] = t.Name
	}
	holds := func(s client.SubscriptionStatus) bool { return s.Subscriber == token }
	isLike := func(s client.SubscriptionStatus) bool {
		return names[token] != "" && names[s.Subscriber] == names[token]
	}
	return !slices.ContainsFunc(subscriptions, holds) && slices.ContainsFunc(subscriptions, isLike), nil
}

// describeRemoval says what is lost with a subscriber.
func describeRemoval(info subscriber.Info, err error) (string, error) {
	if isNotFound(err) {
		return "no subscriber", nil
	}
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("its subscription to %s and %s", count(len(info.Topics), "topic"), count(int(info.Status.Queued), "queued event"))
	if dead := info.Status.DeadLetters; dead.Letters > 0 {
		text += fmt.Sprintf(", and %s with %s", count(int(dead.Letters), "dead letter"), count(int(dead.Events), "event"))
	}
	return text, nil
}

func newTokenListCommand(bus *busFlags) *cobra.Command {
	var asJSON, show bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list all tokens",
		Long: `List all tokens: a line for each with its client's name. With --show-tokens the token, which is a secret, and a tab come
before that; on a terminal both are a table. With --json an array of objects with the field name and, if it is known,
last_used_at (ms since the Unix epoch), and token with --show-tokens.`,
		Example: "  rtm token list -b bus.example -t $ROOT_KEY\n  rtm token list -b @production --json",
		Args:    arguments(0, 0),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			tokens, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			header := []string{"NAME"}
			if show {
				header = []string{"TOKEN", "NAME"}
			}
			var rows [][]string
			for _, token := range tokens {
				row := []string{token.Token, token.Name}
				rows = append(rows, row[len(row)-len(header):])
			}
			return list{
				json: asJSON, value: tokensShown(tokens, show), empty: "No tokens have been added.", header: header, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	addShowTokensFlag(command, &show)
	return command
}

// tokensShown are tokens as --json prints them: without what is a secret, unless it is asked for.
func tokensShown(tokens []client.Token, show bool) []client.Token {
	shown := append([]client.Token{}, tokens...)
	for i := range shown {
		if !show {
			shown[i].Token = ""
		}
	}
	return shown
}
