package web

import (
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// subscriberOperations are for every client and the operator.
func (a *API) subscriberOperations() []operation {
	listSubscribers := operation{
		method: http.MethodGet, path: "/subscriptions", handle: a.getSubscribers, query: unchecked,
		id: "listSubscribers", tag: "subscribers",
		summary: "List all subscribers",
		params:  []parameter{listLimit, listAfter},
		returns: returns(http.StatusOK, "The subscribers, by their clients' names. Several of one name are on one page, which may be "+
			"longer than its limit for that.", []subscriberView{}),
	}
	return []operation{
		listSubscribers, listSubscribers.at("/subscribers", "listSubscribersAlias"),
	}
}

type subscriberView struct {
	// The token for the operator and the subscriber itself, its name for others.
	Subscriber string `json:"subscriber"`
	// The client's name.
	Name bus.ClientName `json:"name"`
	// Null for all but the operator and the subscriber itself.
	UUID      *string         `json:"uuid"`
	Callback  string          `json:"callback"`
	MaxEvents int             `json:"max_events"`
	Timeout   int64           `json:"timeout"` // ms
	Topics    []bus.TopicName `json:"topics"`
	Health    int             `json:"health_points" api:"minimum=0 maximum=100"`
	// ms since the Unix epoch.
	LastAttempted *int64     `json:"last_attempted_at"`
	Events        eventsView `json:"events"`
}

type eventsView struct {
	// Events ever acknowledged.
	Sent   int64 `json:"sent" api:"minimum=0"`
	Queued int64 `json:"queued" api:"minimum=0"`
	// When the oldest queued event was received, in ms since the Unix epoch.
	Oldest *int64 `json:"oldest"`
}

// getSubscribers lists the subscribers.
func (a *API) getSubscribers(w http.ResponseWriter, r *http.Request) {
	a.RespondList(w, r, func(l *rest.List) error {
		page, err := rest.ReadPage(r)
		if err != nil {
			return err
		}
		names, err := a.Auth.ClientNames(r.Context())
		if err != nil {
			return err
		}
		who := rest.Caller(r)
		holder := who.Token
		if !who.Root {
			if holder, err = a.stores.Of(who.Token).Holder(r.Context(), who.Token); err != nil {
				return err
			}
		}
		damaged, err := a.inspector.EachSubscribers(r.Context(), page, func(subscribers []bus.Subscriber) error {
			return l.Add(viewSubscribers(subscribers, who, holder, names))
		})
		a.LogDamaged(r, "skipped subscribers with damaged data", damaged)
		return err
	})
}

// viewSubscribers shows subscribers to a client. Holder is the token that the client's subscription
// belongs to. It differs from the client's token while that is being rotated. The client is shown
// the token it sent: a holder of the old token must not learn the new one.
func viewSubscribers(
	subscribers []bus.Subscriber, who rest.Client, holder bus.Token, names map[bus.Token]bus.ClientName,
) []subscriberView {
	views := make([]subscriberView, len(subscribers))
	for i, sub := range subscribers {
		views[i] = viewSubscriber(sub)
		views[i].Name = bus.PublicName(sub.Token, names[sub.Token])
		token, own := sub.Token, !who.Root && sub.Token == holder
		if own {
			token = who.Token
		}
		views[i].Subscriber = shownIdentity(who, token, views[i].Name)
		if who.Root || own {
			views[i].UUID = &sub.UUID
		}
	}
	return views
}

func viewSubscriber(sub bus.Subscriber) subscriberView {
	return subscriberView{
		Callback:  sub.Callback,
		MaxEvents: sub.MaxEvents,
		Timeout:   sub.Timeout.Milliseconds(),
		Topics:    append([]bus.TopicName{}, sub.Topics...), // never null
		Health:    sub.Health,
		Events:    eventsView{Sent: sub.Sent, Queued: sub.Queued, Oldest: rest.Millis(sub.OldestAt)},

		LastAttempted: rest.Millis(sub.LastAttemptedAt),
	}
}
