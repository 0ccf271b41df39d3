package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newSubCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("sub", "subscribe to topics, and look after subscriptions",
		"  rtm sub add https://UUID@shop.example/events widgets -b @production\n  rtm sub list -b @production",
		newSubAddCommand(&bus), newSubDelCommand(&bus), newSubListCommand(&bus))
	group.AddCommand(newSubscriberCommands(&bus)...)
	bus.add(group)
	return group
}

func newSubAddCommand(bus *busFlags) *cobra.Command {
	var latency, size int
	command := &cobra.Command{
		Use:   "add URL TOPIC [TOPIC...]",
		Short: "subscribe to topics, or change what you are subscribed to",
		Long: `Have events of the topics delivered to a callback. You are unsubscribed from topics that are not given.

The URL's user name is the uuid, a secret that comes with every delivery. Without one, a random uuid is made the first
time and kept from then on. It is printed. Options that are not given stay unchanged.`,
		Example: "  rtm sub add https://UUID@shop.example/events widgets parcels -b @production\n" +
			"  rtm sub add https://UUID@shop.example/events widgets --latency 200 --batch-size 50 -b bus.example -t shop--1",
		Args:              arguments(2, -1),
		ValidArgsFunction: bus.completeTopics(1, -1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			callback, uuid, err := splitCallback(args[0])
			if err != nil {
				return err
			}
			subscription := client.Subscription{Topics: args[1:], Callback: callback, UUID: uuid}
			if cmd.Flags().Changed("latency") {
				if latency < 0 || latency > 3_600_000 {
					return wrongFlag("latency", "0 to 3600000 ms")
				}
				timeout := time.Duration(latency) * time.Millisecond
				subscription.Timeout = &timeout
			}
			if cmd.Flags().Changed("batch-size") {
				if size < 1 || size > 10_000 {
					return wrongFlag("batch-size", "1 to 10000 events")
				}
				subscription.Max = size
			}
			if uuid != "" {
				return c.Subscribe(cmd.Context(), subscription)
			}
			if subscription.UUID, err = bus.chooseUUID(cmd, c); err != nil {
				return err
			}
			if err := c.Subscribe(cmd.Context(), subscription); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(subscription.UUID))
			return err
		}),
	}
	command.Flags().IntVar(&latency, "latency", 0, "how long a batch may wait for more events, in `MS`")
	command.Flags().IntVar(&size, "batch-size", 0, "maximum `COUNT` of events in a batch")
	return command
}

// chooseUUID returns the uuid of this client's subscription, or makes one. So a service that runs
// the same command at each start keeps the uuid that it checks.
func (b *busFlags) chooseUUID(cmd *cobra.Command, c *client.Client) (string, error) {
	_, token, err := b.resolve()
	if err != nil {
		return "", err
	}
	subscriptions, err := c.Subscriptions(cmd.Context())
	if err != nil {
		return "", err
	}
	for _, s := range subscriptions {
		if s.Subscriber != token || s.UUID == "" {
			continue
		}
		if s.UUID == token { // as the Ruby client's rtm subscribes
			fmt.Fprintln(b.stderr, "rtm: the uuid of this subscription is the client's token, which the callback is shown; give another one as the URL's user name")
		}
		return s.UUID, nil
	}
	return rand.Text(), nil
}

// splitCallback takes the user name off a callback's URL.
func splitCallback(text string) (callback, uuid string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" { // it contains a secret, so the error does not show it
		return "", "", usageError{errors.New("the callback cannot be read; it must be like https://UUID@shop.example/events")}
	}
	if u.User == nil {
		return text, "", nil
	}
	uuid = u.User.Username()
	u.User = nil
	return u.String(), uuid, nil
}

func newSubDelCommand(bus *busFlags) *cobra.Command {
	var asking consent
	command := &cobra.Command{
		Use:   "del [TOPIC...]",
		Short: "unsubscribe from topics; without any, from all",
		Long: `Unsubscribe from topics. What is queued is still delivered. Without topics the subscriber goes, with all that waits: it
says on stderr what that is, and on a terminal asks first.`,
		Example:           "  rtm sub del parcels -b @production\n  rtm sub del -b bus.example -t shop--1",
		Args:              arguments(0, -1),
		ValidArgsFunction: bus.completeTopics(0, -1),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if len(args) > 0 {
				return c.Unsubscribe(cmd.Context(), args...)
			}
			info, err := subscriber.New(c).Info(cmd.Context())
			if isNotFound(err) { // the bus says so in its own words
				return c.UnsubscribeAll(cmd.Context())
			}
			what, err := describeRemoval(info, err)
			if err != nil {
				return err
			}
			if err := asking.ask(cmd, "with the subscriber goes "+what); err != nil {
				return err
			}
			return c.UnsubscribeAll(cmd.Context())
		}),
	}
	asking.add(command)
	return command
}

func newSubListCommand(bus *busFlags) *cobra.Command {
	var asJSON, show bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list all subscriptions, with what is queued",
		Long: `List all subscriptions: as a table on a terminal, else as YAML, as the Ruby client does. With --json an array of
objects as the bus's GET /subscriptions has them: subscriber, uuid, callback, max_events, timeout (ms), topics,
health_points, last_attempted_at (ms since the Unix epoch) and events, with sent, queued and oldest (ms since the
Unix epoch).`,
		Example: "  rtm sub list -b @production\n  rtm sub list -b bus.example -t shop--1 --json",
		Args:    arguments(0, 0),
		RunE: bus.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			subscriptions, err := c.Subscriptions(cmd.Context())
			if err != nil {
				return err
			}
			name, err := bus.naming(cmd, c, show)
			if err != nil {
				return err
			}
			return list{
				json: asJSON, value: append([]client.SubscriptionStatus{}, subscriptions...), empty: "There are no subscriptions.",
				header: []string{"SUBSCRIBER", "TOPICS", "CALLBACK", "SENT", "QUEUED", "OLDEST", "HEALTH"},
				rows:   subscriptionRows(subscriptions, name, time.Now()),
				plain: func(w io.Writer) error {
					_, err := io.WriteString(w, rubyYAML(subscriptions))
					return err
				},
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	addShowTokensFlag(command, &show)
	return command
}

func subscriptionRows(subscriptions []client.SubscriptionStatus, name func(string) string, now time.Time) (rows [][]string) {
	for _, s := range subscriptions {
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = max(now.Sub(s.Oldest), 0).Round(time.Second).String() + " ago"
		}
		who := name(s.Subscriber)
		if who != s.Subscriber { // tokens are not to be shown
			who = cmp.Or(s.Name, who)
		}
		rows = append(rows, []string{
			who, strings.Join(s.Topics, " "), s.Callback,
			strconv.FormatInt(s.Sent, 10), strconv.FormatInt(s.Queued, 10), oldest, strconv.Itoa(s.Health),
		})
	}
	return rows
}
