package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

// subscriberFlags say which subscriber a command is about.
type subscriberFlags struct {
	bus   *busFlags
	token string
}

func (f *subscriberFlags) add(command *cobra.Command) {
	command.PersistentFlags().StringVar(&f.token, "subscriber", "", "with the root key: the `NAME` or token of the client whose subscriber is meant")
}

// run makes a cobra function from one that needs a subscriber.
func (f *subscriberFlags) run(do func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error) func(*cobra.Command, []string) error {
	return f.runWithBus(func(cmd *cobra.Command, _ *client.Client, s *subscriber.Subscriber, args []string) error {
		return do(cmd, s, args)
	})
}

// runWithBus makes a cobra function from one that needs a subscriber and a client of the bus.
func (f *subscriberFlags) runWithBus(
	do func(cmd *cobra.Command, c *client.Client, s *subscriber.Subscriber, args []string) error,
) func(*cobra.Command, []string) error {
	return f.bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		s := subscriber.New(c)
		if f.token != "" {
			s = subscriber.Of(c, f.token)
		}
		err := do(cmd, c, s, args)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound && f.token != "" {
			token, failure := tokenOf(cmd.Context(), c, f.token)
			if failure != nil {
				return failure
			}
			if token != "" {
				return do(cmd, c, subscriber.Of(c, token), args)
			}
		}
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden && f.token == "" {
			return fmt.Errorf("%w; the root key has no subscriber: --subscriber says whose is meant", err)
		}
		return err
	})
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

// clock writes a time in the local time zone, which it names.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 -07:00")
}
