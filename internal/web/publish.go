package web

import (
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// maxEvents is the maximum number of events of one publish.
const maxEvents = 1000

// postTopic publishes an event, or an array of events: all of them, in order, or none.
func (a *API) postTopic(w http.ResponseWriter, r *http.Request) {
	topic := topicParam(r)
	if err := topic.Validate(); err != nil {
		a.fail(w, r, err)
		return
	}
	text, err := a.readBody(w, r, a.maxValue(), maxLongBody)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer a.buffers.Release(text)
	key, err := a.readIdempotencyKey(r, text)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	events, err := a.parseEvents(text, topic)
	if err == nil {
		err = a.ingest.Publish(r.Context(), caller(r).Token, topic, events, key)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK) // not 204: an existing client publishes again unless it gets 200
}

// parseEvents reads, validates and packs the events of a body.
func (a *API) parseEvents(text []byte, topic bus.TopicName) ([]wire.PackedEvent, error) {
	return wire.ParseEvents(text, topic, a.now().UnixMilli(), wire.Limits{Events: maxEvents, Data: a.config.MaxEventData})
}
