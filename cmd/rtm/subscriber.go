package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

// subscriberFlags say which subscriber a command is about.
type subscriberFlags struct{ token string }

func (f *subscriberFlags) add(command *cobra.Command) {
	command.PersistentFlags().StringVar(&f.token, "subscriber", "", "with the root key: the `NAME` or token of the client whose subscriber is meant")
}

// run runs a command. If it is about a subscriber, f is not nil. Then the command is run again
// if the bus does not have the token: it may be the name of a client.
func (f *subscriberFlags) run(c *call, do func(*call) error) error {
	if f == nil {
		return do(c)
	}
	c.subscriber = subscriber.New(c.bus)
	if f.token != "" {
		c.subscriber = subscriber.Of(c.bus, f.token)
	}
	err := do(c)
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case refused.Status == http.StatusNotFound && f.token != "":
		token, failure := tokenOf(c.Context(), c.bus, f.token)
		if failure != nil || token == "" {
			return cmp.Or(failure, err)
		}
		c.subscriber = subscriber.Of(c.bus, token)
		return do(c)
	case refused.Status == http.StatusForbidden && f.token == "":
		return fmt.Errorf("%w; the root key has no subscriber: --subscriber says whose is meant", err)
	}
	return err
}

// tokenOf returns the token of the subscriber of a client's name, as screens show it; empty if
// there is none. It fails if there are several.
func tokenOf(ctx context.Context, c *client.Client, name string) (token string, err error) {
	all, err := c.Subscriptions(ctx)
	for _, s := range all {
		switch {
		case s.Name != name || s.Subscriber == name: // it was tried
		case token != "":
			return "", fmt.Errorf("%s has several subscribers: --subscriber takes the token of one, which `rtm sub list --show-tokens` shows to root", terminal.Escape(name))
		default:
			token = s.Subscriber
		}
	}
	return token, err
}
