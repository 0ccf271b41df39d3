package web

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// subscriptionOperations are the routes of existing clients, on the caller's own subscription.
func (h *subscriberHandlers) subscriptionOperations() []operation {
	return []operation{
		{
			method: http.MethodPost, path: "/subscription", handle: h.postSubscription, who: clientsOnly, query: unchecked,
			id: "subscribe", tag: "subscribers",
			summary: "Subscribe to exactly these topics",
			body: &body{
				of:      schemaRef("Subscription"),
				example: `{"topics":["widgets","parcels"],"callback":"https://shop.example/events","uuid":"a-secret-of-yours","timeout":200,"max":50}`,
			},
			returns: returns(http.StatusNoContent, "Subscribed. Unknown topics were created.", nil),
			fails:   []problem{tooManyTopics},
		},
		{
			method: http.MethodDelete, path: "/subscription", handle: h.deleteSubscription, who: clientsOnly, query: unchecked,
			id: "deleteSubscriber", tag: "subscribers",
			summary: "Leave all topics",
			returns: returns(http.StatusNoContent, "The subscriber and its subscriptions are gone; what is queued for it is dropped.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodDelete, path: "/subscription/topics/{topic}", handle: h.deleteSubscriptionTopic, who: clientsOnly, query: unchecked,
			id: "unsubscribe", tag: "subscribers",
			summary: "Leave one topic",
			params:  []parameter{topicInPath},
			returns: returns(http.StatusNoContent, "Unsubscribed.", nil),
			fails:   []problem{notFound},
		},
	}
}

// postSubscription sets a client's subscription: all its topics, and how it gets events.
func (h *subscriberHandlers) postSubscription(w http.ResponseWriter, r *http.Request) {
	of := clientParam(r)
	sub, err := h.readSubscription(w, r, of)
	if err == nil {
		err = h.stores.Subscribe(r.Context(), of, sub, h.Now())
	}
	h.respondSubscriberChanged(w, r, of, err, "subscription set",
		slog.Int("topics", len(sub.Topics)), slog.String("callback_host", hostOf(sub.Callback)))
}

// patch changes the members of a subscription that a client sends.
func (h *subscriberHandlers) patch(w http.ResponseWriter, r *http.Request, of bus.Token) {
	sub, fields, err := h.readSubscriptionChange(w, r, of)
	if err == nil {
		err = h.stores.PatchSubscriber(r.Context(), of, sub, h.Now())
	}
	h.respondSubscriberChanged(w, r, of, err, "changed a subscriber", slog.Any("fields", fields))
}

// readSubscription reads a whole subscription, in which null is as if left out. Without a uuid it
// has an empty one, as in the Ruby original.
func (h *subscriberHandlers) readSubscription(w http.ResponseWriter, r *http.Request, of bus.Token) (sub bus.Subscription, err error) {
	sent, err := h.readSent(w, r)
	if err != nil {
		return sub, err
	}
	if sent.Topics == nil {
		return sub, bus.Invalidf("/topics", "is required: an array of topic names")
	}
	maps.DeleteFunc(sent.Options, func(_ string, value jsontext.Value) bool { return value.Kind() == jsontext.KindNull })
	if sub, err = sent.subscription(); err != nil {
		return sub, err
	}
	if sub.UUID == nil {
		sub.UUID = new(string)
	}
	return sub, h.normalize(r, of, &sub, (*bus.Subscription).Normalize)
}

// normalize normalizes a client's subscription, and reads the stored one if that matters.
func (h *subscriberHandlers) normalize(
	r *http.Request, of bus.Token, sub *bus.Subscription, normalize func(*bus.Subscription, bus.DenyList) error,
) error {
	invalid := normalize(sub, h.config.Deny)
	if invalid == nil {
		return nil
	}
	stored, err := h.at(of).inspector.Detail(r.Context(), of, h.Now())
	switch {
	case errors.Is(err, bus.ErrNotSubscribed):
		return invalid
	case err != nil:
		return err
	}
	sub.Stored = &stored.Subscriber
	return normalize(sub, h.config.Deny)
}

// readSubscriptionChange reads a change of a subscription, in which null is the default, and the
// names of the changed members.
func (h *subscriberHandlers) readSubscriptionChange(w http.ResponseWriter, r *http.Request, of bus.Token) (sub bus.Subscription, fields []string, err error) {
	sent, err := h.readSent(w, r)
	if err != nil {
		return sub, nil, err
	}
	fields = sent.setDefaults()
	if sub, err = sent.subscription(); err != nil {
		return sub, nil, err
	}
	normalize := (*bus.Subscription).NormalizeChange
	if sent.Callback.Sent {
		normalize = (*bus.Subscription).Normalize
	}
	return sub, fields, h.normalize(r, of, &sub, normalize)
}

// sentSubscription is a subscription in a request.
type sentSubscription struct {
	Topics   []bus.TopicName       `json:"topics"`
	Callback rest.Nullable[string] `json:"callback"`
	UUID     rest.Nullable[string] `json:"uuid"`
	Timeout  rest.Nullable[int64]  `json:"timeout"` // ms
	Max      rest.Nullable[int64]  `json:"max"`
	// Options has all other members.
	Options map[string]jsontext.Value `json:",embed"`
}

// notOptions are the members that are not in Options.
var notOptions = []string{"topics", "callback", "uuid", "timeout", "max"}

func (h *subscriberHandlers) readSent(w http.ResponseWriter, r *http.Request) (sent sentSubscription, err error) {
	if err := h.ReadJSON(w, r, rest.MaxLongBody, &sent); err != nil {
		return sent, err
	}
	if sent.Callback.Sent && sent.Callback.Value == nil {
		return sent, bus.Invalidf("/callback", "must be a string")
	}
	if limit := h.config.MaxTopics; limit > 0 && len(sent.Topics) > limit {
		return sent, bus.Invalidf("/topics", "must be at most %d topics", limit)
	}
	return sent, nil
}

// setDefaults puts the defaults in the place of null, and returns the names of all members.
func (s *sentSubscription) setDefaults() (names []string) {
	if s.Topics != nil {
		names = append(names, "topics")
	}
	if s.Callback.Sent {
		names = append(names, "callback")
	}
	setDefault(&s.UUID, "", "uuid", &names)
	setDefault(&s.Timeout, bus.DefaultTimeout.Milliseconds(), "timeout", &names)
	setDefault(&s.Max, bus.DefaultMaxEvents, "max", &names)
	return append(names, slices.Sorted(maps.Keys(s.Options))...)
}

func setDefault[T any](member *rest.Nullable[T], value T, name string, names *[]string) {
	if !member.Sent {
		return
	}
	*names = append(*names, name)
	if member.Value == nil {
		member.Value = &value
	}
}

// subscription converts the request; it validates the options only.
func (s *sentSubscription) subscription() (sub bus.Subscription, err error) {
	sub = bus.Subscription{Topics: s.Topics, UUID: s.UUID.Value}
	if s.Callback.Value != nil {
		sub.Callback = *s.Callback.Value
	}
	if s.Timeout.Value != nil {
		// Clamped to just outside the allowed range, so that no number of ms overflows.
		timeout := time.Duration(min(max(*s.Timeout.Value, -1), bus.MaxTimeout.Milliseconds()+1)) * time.Millisecond
		sub.Timeout = &timeout
	}
	if s.Max.Value != nil {
		maxEvents := int(*s.Max.Value)
		sub.MaxEvents = &maxEvents
	}
	sub.Options = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.Contains(bus.OptionNames(), name) {
			known := strings.Join(slices.Concat(notOptions, bus.OptionNames()), ", ")
			return sub, bus.Invalidf(string(jsontext.Pointer("").AppendToken(name)), "is not known here; known are %s", known)
		}
		if sub.Options[name], err = bus.ParseOption(name, string(s.Options[name])); err != nil {
			return sub, err
		}
	}
	return sub, nil
}

// deleteSubscription deletes a client's subscription with its queued events.
func (h *subscriberHandlers) deleteSubscription(w http.ResponseWriter, r *http.Request) {
	of := clientParam(r)
	h.respondSubscriberChanged(w, r, of, h.at(of).store.DeleteSubscriber(r.Context(), of), "subscription deleted")
}

// deleteSubscriptionTopic removes a topic from a client's subscription.
func (h *subscriberHandlers) deleteSubscriptionTopic(w http.ResponseWriter, r *http.Request) {
	of, topic := clientParam(r), rest.TopicParam(r)
	err := h.stores.Unsubscribe(r.Context(), of, topic)
	h.respondSubscriberChanged(w, r, of, err, "unsubscribed from topic", slog.String("topic", string(topic)))
}

// hostOf returns the host of a callback for the log: its path may contain a secret.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Host
}
