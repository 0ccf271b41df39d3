package web

import (
	"net/http"
	"strconv"

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
	body, err := s.readBodyUpTo(w, r, s.maxValue(), maxLongBody)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer body.release()
	key, err := s.readIdempotencyKey(r, body.text)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	events, err := s.readEvents(body, topic)
	if err == nil {
		err = s.ingest.Publish(r.Context(), caller(r).Token, topic, events, key)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK) // not 204: an existing client publishes again unless it gets 200
}

// readEvents reads, validates and packs the events of a body.
func (s *Server) readEvents(body *body, topic bus.TopicName) (events []wire.PackedEvent, err error) {
	now := s.now().UnixMilli()
	read := func(pointer string) error {
		event := bus.Event{Topic: topic, Timestamp: now}
		if err := body.event(&event); err != nil {
			return err
		}
		packed, err := s.ingest.Pack(&event)
		events = append(events, packed)
		return bus.At(pointer, err)
	}
	if body.isArray() {
		err = body.array(func() error {
			if len(events) == maxEvents {
				return bus.Invalidf("", "has more than %d events; send them in several requests", maxEvents)
			}
			return read("/" + strconv.Itoa(len(events)))
		})
	} else {
		err = read("")
	}
	if err == nil {
		err = body.end()
	}
	if err == nil && len(events) == 0 {
		err = bus.Invalidf("", "the array is empty; send 1 to %d events", maxEvents)
	}
	return events, err
}

// event reads an event. Its time stays as it is if none is given.
func (b *body) event(e *bus.Event) error {
	return b.object(func(member []byte) (err error) {
		switch string(member) {
		case "type":
			var text string
			text, err = b.string()
			e.Type = bus.EventType(text)
		case "url":
			e.URL, err = b.string()
		case "timestamp":
			var at int64
			var given bool
			if at, given, err = optional(b, (*body).wholeNumber); given {
				e.Timestamp = at
			}
		case "data":
			e.Data, _, err = optional(b, (*body).raw)
		default:
			err = b.unknown("type", "url", "timestamp", "data")
		}
		return err
	})
}
