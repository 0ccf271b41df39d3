package tail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"routemaster/client"
	"routemaster/client/subscriber"
	"routemaster/internal/bus"
)

// The interval between two checks of the subscription grows, since a list of subscriptions costs
// the bus something.
const (
	firstInterval = time.Second
	maxInterval   = time.Minute
)

// watch checks the subscription until the context is done. It fails if the subscription is gone,
// and tells the user if deliveries do not arrive.
func (s *subscription) watch(ctx context.Context) error {
	said := map[string]bool{}
	for pause := firstInterval; ; pause = min(2*pause, maxInterval) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		subscriptions, err := s.subscriber.Subscriptions(ctx)
		if hasStatus(err, http.StatusUnauthorized) {
			return errors.New("the token has been removed from the bus")
		}
		if err != nil {
			continue // the bus is unavailable: it delivers when it is back
		}
		i := slices.IndexFunc(subscriptions, func(sub client.SubscriptionStatus) bool { return sub.UUID == s.receiver.UUID() })
		if i < 0 {
			return errors.New("the subscription has been removed, or replaced by another one of this token")
		}
		for _, text := range s.complaints(ctx, subscriptions[i]) {
			if !said[text] {
				said[text] = true
				s.say("%s", text)
			}
		}
	}
}

// complaints returns what is wrong with the subscription.
func (s *subscription) complaints(ctx context.Context, sub client.SubscriptionStatus) (texts []string) {
	switch {
	case sub.Health == bus.MaxHealth || s.refused.Load() > 0:
	case s.arrived.Load() == 0:
		texts = append(texts, fmt.Sprintf("the bus tries to deliver to %s, and does not succeed%s. Check that it reaches this address (--public-url), "+
			"that it trusts the certificate (--cert, or ROUTEMASTER_SSL_VERIFY=NO on its workers), and that ROUTEMASTER_CALLBACK_DENY there allows it",
			s.callback(), s.lastFailure(ctx)))
	default:
		texts = append(texts, fmt.Sprintf("not all deliveries to %s succeed%s: they do not arrive any more, or the bus does not wait for the answer "+
			"as long as printing, or the command, takes (ROUTEMASTER_TIMEOUT)", s.callback(), s.lastFailure(ctx)))
	}
	for _, topic := range s.Topics {
		if !slices.Contains(sub.Topics, topic) {
			texts = append(texts, "topic "+topic+" was deleted: no more events of it come, unless tail is started again")
		}
	}
	return texts
}

// lastFailure says in brackets why the last attempt to deliver failed; it is empty if the bus does
// not say.
func (s *subscription) lastFailure(ctx context.Context) string {
	for attempt, err := range subscriber.New(s.subscriber).Attempts(ctx, subscriber.AttemptFilter{}) {
		switch {
		case err != nil || attempt.Remedy() == "":
			return ""
		case attempt.Status != 0:
			return fmt.Sprintf(" (it got %d: %s)", attempt.Status, attempt.Remedy())
		}
		return fmt.Sprintf(" (%s: %s)", attempt.Error, attempt.Remedy())
	}
	return ""
}
