package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// postSubscription sets the caller's subscription: all its topics, and how it gets events.
func (a *API) postSubscription(w http.ResponseWriter, r *http.Request) {
	sub, err := a.readSubscription(w, r)
	if err == nil {
		err = sub.Normalize(a.config.Deny)
	}
	if limit := a.config.MaxSubscriptionTopics; err == nil && limit > 0 && len(sub.Topics) > limit {
		err = bus.Invalidf("/topics", "must be at most %d topics", limit)
	}
	if err == nil {
		err = a.store.Subscribe(r.Context(), rest.Caller(r).Token, sub, a.Now())
	}
	a.RespondChanged(w, r, err, "subscription set",
		slog.Int("topics", len(sub.Topics)), slog.String("callback_host", hostOf(sub.Callback)))
}

// readSubscription reads a subscription; it does not validate it.
func (a *API) readSubscription(w http.ResponseWriter, r *http.Request) (sub bus.Subscription, err error) {
	var sent struct {
		Topics   []bus.TopicName `json:"topics"`
		Callback string          `json:"callback"`
		UUID     *string         `json:"uuid"`
		Timeout  *int64          `json:"timeout"` // ms
		Max      *int64          `json:"max"`
	}
	if err := a.ReadJSON(w, r, rest.MaxLongBody, &sent); err != nil {
		return sub, err
	}
	if sent.Topics == nil {
		return sub, bus.Invalidf("/topics", "is required: an array of topic names")
	}
	sub = bus.Subscription{Topics: sent.Topics, Callback: sent.Callback, UUID: sent.UUID}
	if sent.Timeout != nil {
		// Clamped to just outside what is allowed, so that no number of ms overflows.
		timeout := time.Duration(min(max(*sent.Timeout, -1), bus.MaxTimeout.Milliseconds()+1)) * time.Millisecond
		sub.Timeout = &timeout
	}
	if sent.Max != nil {
		maxEvents := int(*sent.Max)
		sub.MaxEvents = &maxEvents
	}
	return sub, nil
}

// deleteSubscription deletes the caller's subscription with its queued events.
func (a *API) deleteSubscription(w http.ResponseWriter, r *http.Request) {
	a.RespondChanged(w, r, a.store.DeleteSubscriber(r.Context(), rest.Caller(r).Token), "subscription deleted")
}

// deleteSubscriptionTopic removes a topic from the caller's subscription.
func (a *API) deleteSubscriptionTopic(w http.ResponseWriter, r *http.Request) {
	topic := topicParam(r)
	err := a.store.Unsubscribe(r.Context(), rest.Caller(r).Token, topic)
	a.RespondChanged(w, r, err, "unsubscribed from topic", slog.String("topic", string(topic)))
}

// hostOf returns the host of a callback for the log: its path may contain a secret.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Host
}
