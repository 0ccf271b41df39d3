package web

import (
	"net/http"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

// maxEvents is the maximum number of events of one publish.
const maxEvents = 1000

// escapedLen is how long the encoding of one byte can be: JSON can write a character as \u0000.
const escapedLen = 6

// topicsPath is what the path of a topic begins with.
const topicsPath = "/topics/"

// maxValue is the maximum size of a body that is one value, in bytes.
func (a *API) maxValue() int { return rest.MaxValueBody + escapedLen*a.config.MaxEventData }

// postTopic publishes an event, or an array of events: all of them, in order, or none.
func (a *API) postTopic(w http.ResponseWriter, r *http.Request) {
	topic := bus.TopicName(strings.TrimPrefix(r.URL.Path, topicsPath))
	if err := topic.Validate(); err != nil {
		a.Fail(w, r, err)
		return
	}
	text, err := a.ReadBody(w, r, a.maxValue(), rest.MaxLongBody)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	defer a.Release(r, text)
	key, err := rest.ReadIdempotencyKey(r, text, a.config.IdempotencyTTL)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	events, err := a.parseEvents(text, topic)
	if err == nil {
		err = a.ingest.Publish(r.Context(), rest.Caller(r).Token, topic, events, key)
	}
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK) // not 204: an existing client publishes again unless it gets 200
}

// parseEvents reads, validates and packs the events of a body.
func (a *API) parseEvents(text []byte, topic bus.TopicName) ([]wire.PackedEvent, error) {
	return wire.ParseEvents(text, topic, a.Now().UnixMilli(), wire.Limits{Events: maxEvents, Data: a.config.MaxEventData})
}
