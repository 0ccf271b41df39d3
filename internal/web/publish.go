package web

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// maxEvents is the most events of one publish.
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
	w.WriteHeader(http.StatusOK) // not 204: an existing client takes only 200 for success, and else publishes again
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

// maxKey is the most characters of an idempotency key.
const maxKey = 128

// readIdempotencyKey reads the Idempotency-Key of a request, if it has one, and how long it is to be remembered. Requests are the same
// if they have the same path and body.
func (s *Server) readIdempotencyKey(r *http.Request, text []byte) (*store.IdempotencyKey, error) {
	values, lives := r.Header.Values("Idempotency-Key"), r.Header.Values("Idempotency-Expires-In")
	if len(values) == 0 {
		if len(lives) > 0 {
			return nil, bus.Invalidf("", "the Idempotency-Expires-In header is of use only beside an Idempotency-Key; send both or neither")
		}
		return nil, nil
	}
	key := values[0]
	if len(values) != 1 || !isVisible(key, maxKey) {
		return nil, bus.Invalidf("", "the Idempotency-Key header must be one value of 1 to %d visible ASCII characters", maxKey)
	}
	ttl, err := readKeyTTL(lives, s.config.IdempotencyTTL)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	digest.Write([]byte(r.URL.Path + "\n"))
	digest.Write(text)
	return &store.IdempotencyKey{Key: key, Digest: string(digest.Sum(nil)), TTL: ttl}, nil
}

// readKeyTTL reads the values of Idempotency-Expires-In, in s.
func readKeyTTL(values []string, fallback time.Duration) (time.Duration, error) {
	const least, most = int(bus.MinIdempotencyTTL / time.Second), int(bus.MaxIdempotencyTTL / time.Second)
	if len(values) == 0 {
		return fallback, nil
	}
	seconds, err := strconv.Atoi(values[0])
	if len(values) != 1 || err != nil || seconds < least || seconds > most {
		return 0, bus.Invalidf("", "the Idempotency-Expires-In header must be one integer from %d to %d, in s", least, most)
	}
	return time.Duration(seconds) * time.Second, nil
}
