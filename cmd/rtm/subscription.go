package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/subscriber"
)

var subRows = row{
	use: "sub", short: "subscribe to topics, and look after subscriptions",
	example: "  rtm sub add https://UUID@shop.example/events widgets -b @production\n  rtm sub list -b @production",
	rows: []row{
		{
			use: "add URL TOPIC [TOPIC...]", short: "subscribe to topics, or change what you are subscribed to", kinds: []kind{anything, topic},
			long: `Have events of the topics delivered to a callback. You are unsubscribed from topics that are not given.

The URL's user name is the uuid, a secret that comes with every delivery. Without one, a random uuid is made the first
time and kept from then on. It is printed. Options that are not given stay unchanged.`,
			example: "  rtm sub add https://UUID@shop.example/events widgets parcels -b @production\n" +
				"  rtm sub add https://UUID@shop.example/events widgets --latency 200 --batch-size 50 -b bus.example -t shop--1",
			flags: func(f *pflag.FlagSet) {
				f.Int("latency", 0, "how long a batch may wait for more events, in `MS`")
				f.Int("batch-size", 0, "maximum `COUNT` of events in a batch")
			},
			run: subscribe,
		},
		{
			use: "del [TOPIC...]", short: "unsubscribe from topics; without any, from all", kinds: []kind{topic},
			long: `Unsubscribe from topics. What is queued is still delivered. Without topics the subscriber goes, with all that waits: it
says on stderr what that is, and on a terminal asks first.`,
			example: "  rtm sub del parcels -b @production\n  rtm sub del -b bus.example -t shop--1",
			asks:    true,
			run:     unsubscribe,
		},
		{
			use: "list", short: "list all subscriptions, with what is queued",
			long: `List all subscriptions: as a table on a terminal, else as YAML, as the Ruby client does. With --json an array of
objects as the bus's GET /subscriptions has them: subscriber, uuid, callback, max_events, timeout (ms), topics,
health_points, last_attempted_at (ms since the Unix epoch) and events, with sent, queued and oldest (ms since the
Unix epoch).`,
			example: "  rtm sub list -b @production\n  rtm sub list -b bus.example -t shop--1 --json",
			flags:   addShowTokensFlag,
			json:    jsonArray,
			run:     listSubscriptions,
		},
		subShowRow, subSetRow, subPauseRow, subResumeRow, subRetryRow, subTestRow, secretRows,
	},
}

func subscribe(c *call) error {
	callback, uuid, err := splitCallback(c.args[0])
	if err != nil {
		return err
	}
	subscription := client.Subscription{Topics: c.args[1:], Callback: callback, UUID: uuid, Max: c.int("batch-size")}
	if c.given("latency") {
		if latency := c.int("latency"); latency < 0 || latency > 3_600_000 {
			return wrongFlag("latency", "0 to 3600000 ms")
		}
		subscription.Timeout = new(time.Duration(c.int("latency")) * time.Millisecond)
	}
	if c.given("batch-size") && (subscription.Max < 1 || subscription.Max > 10_000) {
		return wrongFlag("batch-size", "1 to 10000 events")
	}
	if uuid != "" {
		return c.bus.Subscribe(c.Context(), subscription)
	}
	if subscription.UUID, err = chooseUUID(c); err != nil {
		return err
	}
	if err := c.bus.Subscribe(c.Context(), subscription); err != nil {
		return err
	}
	return c.say(subscription.UUID)
}

// chooseUUID returns the uuid of this client's subscription, or makes one. So a service that runs
// the same command at each start keeps the uuid that it checks.
func chooseUUID(c *call) (string, error) {
	_, token, err := c.flags.resolve()
	if err != nil {
		return "", err
	}
	subscriptions, err := c.bus.Subscriptions(c.Context())
	if err != nil {
		return "", err
	}
	for _, s := range subscriptions {
		if s.Subscriber != token || s.UUID == "" {
			continue
		}
		if s.UUID == token { // as the Ruby client's rtm subscribes
			c.note("the uuid of this subscription is the client's token, which the callback is shown; give another one as the URL's user name")
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

func unsubscribe(c *call) error {
	if len(c.args) > 0 {
		return c.bus.Unsubscribe(c.Context(), c.args...)
	}
	info, err := subscriber.New(c.bus).Info(c.Context())
	if isNotFound(err) { // the bus says so in its own words
		return c.bus.UnsubscribeAll(c.Context())
	}
	what, err := describeRemoval(info, err)
	if err != nil {
		return err
	}
	if err := c.ask("with the subscriber goes " + what); err != nil {
		return err
	}
	return c.bus.UnsubscribeAll(c.Context())
}

// listSubscriptions prints YAML for scripts, as the Ruby client does.
func listSubscriptions(c *call) error {
	subscriptions, err := c.bus.Subscriptions(c.Context())
	if err != nil {
		return err
	}
	name, err := c.naming()
	if err != nil {
		return err
	}
	now := time.Now()
	l := tableOf(subscriptions, "There are no subscriptions.", "SUBSCRIBER|TOPICS|CALLBACK|SENT|QUEUED|OLDEST|HEALTH", func(s client.SubscriptionStatus) []any {
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = max(now.Sub(s.Oldest), 0).Round(time.Second).String() + " ago"
		}
		who := name(s.Subscriber)
		if who != s.Subscriber { // tokens are not to be shown
			who = cmp.Or(s.Name, who)
		}
		return []any{who, strings.Join(s.Topics, " "), s.Callback, s.Sent, s.Queued, oldest, s.Health}
	})
	l.plain = func(w io.Writer) error {
		_, err := io.WriteString(w, rubyYAML(subscriptions))
		return err
	}
	return c.print(l)
}
