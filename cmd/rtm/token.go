package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

var tokenRows = row{
	use: "token", short: "let clients in, and keep them out: for the operator, with the root key",
	example: "  rtm token add shop -b bus.example -t $ROOT_KEY\n  rtm token list -b @production",
	rows: []row{
		{
			use: "add SERVICE [TOKEN]", short: "add a token for a service, and print it; without TOKEN the bus makes one",
			example: "  rtm token add shop -b bus.example -t $ROOT_KEY\n  rtm token add shop shop--1 -b @production",
			run: saying(func(c *call) (string, error) {
				token := ""
				if len(c.args) == 2 {
					token = c.args[1]
				}
				added, err := c.bus.AddToken(c.Context(), c.args[0], token)
				return added.Token, err
			}),
		},
		{
			use: "del TOKEN", short: "remove a token and its subscriber",
			long: `Remove a token and its subscriber, with all that waits to be delivered to it. It says on stderr what goes, and on a
terminal asks first. Instead of the token, it takes the name of a client that has one token only. rtm token rotate
replaces a token, and keeps the subscriber, also when the old token that rotate --keep has left is removed.`,
			example: "  rtm token del shop -b bus.example -t $ROOT_KEY\n  rtm token del shop--1 --yes -b @production",
			asks:    true,
			run:     deleteToken,
		},
		{
			use: "list", short: "list all tokens",
			long: `List all tokens: a line for each with its client's name. With --show-tokens the token, which is a secret, and a tab come
before that; on a terminal both are a table. With --json an array of objects with the field name and, if it is known,
last_used_at (ms since the Unix epoch), and token with --show-tokens.`,
			example: "  rtm token list -b bus.example -t $ROOT_KEY\n  rtm token list -b @production --json",
			flags:   addShowTokensFlag,
			json:    jsonArray,
			run:     listTokens,
		},
		{
			use: "rotate OLD", short: "change a client's token, and keep its subscription with all that is queued",
			long: `Have the bus make another token of the same name, print it, move the subscription, its topics and all that is queued
to it, and then remove the old one. Publishing and deliveries go on meanwhile, in order.

With --keep the old token also works, for the same subscription, until the command is run again without --keep. In
between, give the service the new token. If the command is stopped, run it again: it continues where it stopped, and
prints the same token. OLD is the token, or the name of a client that has one token, or whose token is being changed.`,
			example: "  rtm token rotate shop--1 --keep -b @production\n  rtm token rotate shop--1 -b bus.example -t $ROOT_KEY",
			flags: func(f *pflag.FlagSet) {
				f.Bool("keep", false, "keep the old token, too, until this is run again without --keep")
			},
			run: rotateToken,
		},
	},
}

func deleteToken(c *call) error {
	// The bus responds in the same way whether the token was there or not.
	tokens, err := c.bus.Tokens(c.Context())
	if err != nil {
		return err
	}
	token, err := pickToken(tokens, c.args[0])
	if err != nil {
		return err
	}
	what, err := describeRemoval(subscriber.Of(c.bus, token).Info(c.Context()))
	if err != nil {
		return err
	}
	kept, err := keepsSubscription(c.Context(), c.bus, tokens, token)
	if err != nil {
		return err
	}
	if kept {
		what = "no subscription: another token of its client has that"
	}
	if err := c.ask("with the token goes " + what); err != nil {
		return err
	}
	return c.bus.DeleteToken(c.Context(), token)
}

// listTokens shows tokens, which are secrets, only if it is asked to.
func listTokens(c *call) error {
	tokens, err := c.bus.Tokens(c.Context())
	if err != nil {
		return err
	}
	if c.is("show-tokens") {
		return printList(c, tokens, "No tokens have been added.", "TOKEN|NAME", func(t client.Token) []any { return []any{t.Token, t.Name} })
	}
	for i := range tokens {
		tokens[i].Token = ""
	}
	return printList(c, tokens, "No tokens have been added.", "NAME", func(t client.Token) []any { return []any{t.Name} })
}

func rotateToken(c *call) error {
	tokens, err := c.bus.Tokens(c.Context())
	if err != nil {
		return err
	}
	old, err := pickToken(tokens, c.args[0])
	if errors.Is(err, errManyTokens) {
		old, err = c.args[0], nil // the bus knows which of them is being changed
	}
	if err != nil {
		return err
	}
	var failed error
	_, err = c.bus.RotateToken(c.Context(), old, c.is("keep"), func(token client.Token) { failed = c.say(token.Token) })
	return cmp.Or(err, failed)
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

// describeRemoval describes what is lost with a subscriber.
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
