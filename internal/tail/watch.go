package tail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
		why := ": " + whatToCheck
		if failure, ok := s.lastFailure(ctx); ok {
			why = explainFailure(failure) + flagFor(failure)
		}
		texts = append(texts, "the bus tries to deliver to "+s.callback()+", and does not succeed"+why)
	default:
		why := ""
		if failure, ok := s.lastFailure(ctx); ok {
			why = explainFailure(failure)
		}
		texts = append(texts, fmt.Sprintf("not all deliveries to %s succeed%s. They do not arrive any more, or the bus does not wait for the answer "+
			"as long as printing, or the command, takes (ROUTEMASTER_TIMEOUT)", s.callback(), why))
	}
	for _, topic := range s.Topics {
		if !slices.Contains(sub.Topics, topic) {
			texts = append(texts, "topic "+topic+" was deleted: no more events of it come, unless tail is started again")
		}
	}
	return texts
}

// whatToCheck is what may be wrong with a tail that gets nothing, if the bus does not say.
const whatToCheck = "check that it reaches this address (--public-url), that it trusts the certificate (--cert, or " +
	"ROUTEMASTER_SSL_VERIFY=NO on its workers), and that ROUTEMASTER_CALLBACK_DENY there allows it"

// lastFailure returns the last attempt to deliver, if the bus says that it failed.
func (s *subscription) lastFailure(ctx context.Context) (failure subscriber.Attempt, ok bool) {
	for attempt, err := range subscriber.New(s.subscriber).Attempts(ctx, subscriber.AttemptFilter{}) {
		return attempt, err == nil && attempt.Remedy() != ""
	}
	return failure, false
}

// explainFailure says why an attempt failed, and what to do, as the end of a sentence.
func explainFailure(attempt subscriber.Attempt) string {
	return fmt.Sprintf(" (%s): %s", cmp.Or(attempt.Error, strconv.Itoa(attempt.Status)), attempt.Remedy())
}

// flagFor names in brackets what of a tail is to be set for an attempt to succeed.
func flagFor(attempt subscriber.Attempt) string {
	switch attempt.Error {
	case "tls":
		return " (--cert and --key, or ROUTEMASTER_SSL_VERIFY=NO on the bus's workers)"
	case "", "denied", "receipt", "secrets": // no other address helps, or the text says it
		return ""
	}
	return " (--public-url says how the bus reaches this host)"
}
