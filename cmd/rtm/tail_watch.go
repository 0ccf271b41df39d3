package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
)

// The pauses between two looks at the subscription: the first, and the longest, as listing them all costs the bus something.
const (
	firstLook = time.Second
	mostLook  = time.Minute
)

// watch looks after the subscription until the context is done. It fails if somebody takes it away, and tells the user
// if deliveries do not arrive.
func (s *tailSubscription) watch(ctx context.Context) error {
	told := map[string]bool{}
	for pause := firstLook; ; pause = min(2*pause, mostLook) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		subscriptions, err := s.subscriber.Subscriptions(ctx)
		if hasStatus(err, http.StatusUnauthorized) {
			return errors.New("the bus does not know this token any more")
		}
		if err != nil {
			continue // the bus is away; what it still has will come when it is back
		}
		i := slices.IndexFunc(subscriptions, func(sub client.SubscriptionStatus) bool { return sub.UUID == s.receiver.uuid })
		if i < 0 {
			return errors.New("the subscription is gone: somebody else has removed it, or subscribed with this token")
		}
		for _, text := range s.complaints(subscriptions[i]) {
			if !told[text] {
				told[text] = true
				s.say("%s", text)
			}
		}
	}
}

// complaints are what is wrong with a subscription.
func (s *tailSubscription) complaints(sub client.SubscriptionStatus) (texts []string) {
	switch {
	case sub.Health == bus.MaxHealth || s.refused.Load() > 0:
	case s.arrived.Load() == 0:
		texts = append(texts, fmt.Sprintf("the bus tries to deliver to %s, and does not succeed. Check that it reaches this address (--public-url), "+
			"that it trusts the certificate (--cert, or ROUTEMASTER_SSL_VERIFY=NO on its workers), and that ROUTEMASTER_CALLBACK_DENY there allows it", s.callback()))
	default:
		texts = append(texts, fmt.Sprintf("not all deliveries to %s succeed: they do not arrive any more, or the bus does not wait for the answer "+
			"as long as printing, or the command, takes (ROUTEMASTER_TIMEOUT)", s.callback()))
	}
	for _, topic := range s.topics {
		if !slices.Contains(sub.Topics, topic) {
			texts = append(texts, "topic "+topic+" was deleted: no more events of it come, unless tail is started again")
		}
	}
	return texts
}

// checkTopics refuses topics that do not exist, unless they are to be created.
func (t *tail) checkTopics(ctx context.Context, on *client.Client) error {
	known, err := on.Topics(ctx)
	if err != nil || t.create {
		return err
	}
	var names []string
	for _, topic := range known {
		names = append(names, topic.Name)
	}
	var unknown []string
	for _, topic := range t.topics {
		if !slices.Contains(names, topic) {
			unknown = append(unknown, topic+suggest(topic, names))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("there is no topic %s; --create subscribes to it all the same, which creates it for good", strings.Join(unknown, ", nor "))
}

// suggest names the topics that may have been meant.
func suggest(topic string, names []string) string {
	var close []string
	for _, name := range names {
		near := bus.EditDistance(topic, name) <= max(1, len(topic)/4) || strings.HasPrefix(name, topic) || strings.HasPrefix(topic, name)
		if near && bus.TopicName(name).Validate() == nil {
			close = append(close, name)
		}
	}
	if len(close) == 0 {
		return ""
	}
	slices.Sort(close)
	return " (did you mean " + strings.Join(close[:min(len(close), 5)], ", ") + "?)"
}
