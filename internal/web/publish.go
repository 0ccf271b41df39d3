package web

import (
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// maxEvents is the maximum number of events of one publish.
const maxEvents = 1000

// postTopic publishes an event, or an array of events: all of them, in order, or none.
func (s *Server) postTopic(w http.ResponseWriter, r *http.Request) {
	topic := topicParam(r)
	if err := topic.Validate(); err != nil {
		s.fail(w, r, err)
		return
	}
	text, err := s.readBody(w, r, s.maxValue(), maxLongBody)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.buffers.Release(text)
	key, err := s.readIdempotencyKey(r, text)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	events, err := s.parseEvents(text, topic)
	if err == nil {
		err = s.ingest.Publish(r.Context(), caller(r).Token, topic, events, key)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK) // not 204: an existing client publishes again unless it gets 200
}

// parseEvents reads, validates and packs the events of a body.
func (s *Server) parseEvents(text []byte, topic bus.TopicName) ([]wire.PackedEvent, error) {
	return wire.ParseEvents(text, topic, s.now().UnixMilli(), wire.Limits{Events: maxEvents, Data: s.config.MaxEventData})
}
