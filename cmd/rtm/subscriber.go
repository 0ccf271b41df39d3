package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// subscriberFlags say which subscriber a command is about.
type subscriberFlags struct {
	bus   *busFlags
	token string
}

func (f *subscriberFlags) add(command *cobra.Command) {
	command.PersistentFlags().StringVar(&f.token, "subscriber", "", "with the root key: the `TOKEN` of the client whose subscriber is meant")
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
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden && f.token == "" {
			return fmt.Errorf("%w; the root key has no subscriber: --subscriber says whose is meant", err)
		}
		return err
	})
}

// clock writes a time in the local time zone, which it names.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 -07:00")
}
