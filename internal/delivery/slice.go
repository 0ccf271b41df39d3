package delivery

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
	"routemaster/internal/store"
)

// slice is the part of a batch that one delivery carries: all of it, or its first events.
type slice struct {
	payload
	batch    *store.Delivery
	compiled *compiledOptions
	// webhookID stands for the content; empty if the subscriber has no options.
	webhookID string
	signer    *signature.Signer
	// unreadable is how many events cannot be read, cause why the first of them cannot.
	unreadable int
	cause      error
}

// cut makes the slice of a batch that is sent at a time. It takes over the batch's events.
func cut(batch *store.Delivery, compiled *compiledOptions, now time.Time) *slice {
	s := &slice{batch: batch, compiled: compiled}
	events, maxBytes := batch.Events, compiled.options.MaxBytes
	if batch.Basis == nil {
		s.payload, s.unreadable, s.cause = newPayload(events, maxBytes, io.Discard)
		return s
	}
	events = events[:min(len(events), batch.Basis.Count)]
	if maxBytes == 0 { // it is known how many events are signed, before the first is read
		s.sign(len(events), now)
	}
	s.payload, s.unreadable, s.cause = newPayload(events, maxBytes, s.signer)
	if maxBytes > 0 {
		s.sign(s.taken, now)
		_, _ = io.Copy(s.signer, s.reader()) // neither fails: the events were read before
	}
	return s
}

// sign begins the signatures of a number of events.
func (s *slice) sign(events int, now time.Time) {
	p := s.batch.Basis
	s.webhookID = signature.ID(s.batch.Batch, p.Revision, events, p.Total)
	if p.WebhookID != "" && events == p.Total {
		s.webhookID = p.WebhookID
	}
	s.signer = signature.NewSigner(s.compiled.secrets, s.webhookID, now)
}

// setHeader sets the headers of a subscriber with options.
func (s *slice) setHeader(header http.Header) {
	if s.batch.Basis == nil {
		return
	}
	// A structured field (RFC 8941, section 3.2): a dictionary.
	value := fmt.Sprintf("batch=%q, attempt=%d", s.batch.Batch, s.batch.Attempts)
	if replay := s.batch.Basis.Replay; replay != "" {
		value += fmt.Sprintf(", replay=%q", replay)
	}
	if s.isTest() {
		value += ", test"
	}
	header.Set("Routemaster-Delivery", value)
	s.signer.SetHeader(header)
}

// isTest reports whether it is a test event.
func (s *slice) isTest() bool { return s.batch.IsTest() }

// isRest reports whether it reaches to the end of the batch.
func (s *slice) isRest() bool { return s.taken >= s.batch.Total() }

// isTooOld reports whether its batch dies if this attempt fails, because its first event has waited
// too long.
func (s *slice) isTooOld(letters *bus.DeadLetters, now time.Time) bool {
	return letters.Age > 0 && now.Sub(s.batch.CreatedAt) > letters.Age
}

// all are the events of the slice, including unreadable ones.
func (s *slice) all() store.Ranges { return store.Ranges{{First: 0, Last: s.taken - 1}} }

// without are the events of the slice that are not among some, given by their indexes in it.
func (s *slice) without(some []int) store.Ranges {
	var indexes []int
	next := 0
	for i := range s.taken {
		if next < len(some) && s.index(some[next]) == i {
			next++
			continue
		}
		indexes = append(indexes, i)
	}
	return store.RangesOf(indexes)
}

// ranges are some events, given by their indexes in the slice, as the batch has them.
func (s *slice) ranges(some []int) store.Ranges {
	indexes := make([]int, len(some))
	for i, in := range some {
		indexes[i] = s.index(in)
	}
	return store.RangesOf(indexes)
}

// unusedPace is how much too long the next delivery would wait, because fewer events are sent than
// were counted when the batch was taken.
func (s *slice) unusedPace() time.Duration {
	o := s.compiled.options
	if s.isTest() || o.MaxEventsPerMinute == 0 {
		return 0
	}
	waits := func(events int) time.Duration {
		wait := time.Duration(events) * time.Minute / time.Duration(o.MaxEventsPerMinute)
		if o.MaxRequestsPerMinute > 0 {
			wait = max(wait, time.Minute/time.Duration(o.MaxRequestsPerMinute))
		}
		return wait
	}
	return waits(s.batch.Basis.Count) - waits(s.taken)
}

// letter is a dead letter of events of the slice, given their indexes in the batch; of all that is
// left of the batch if there are none.
func (s *slice) letter(reason bus.DeathReason, d *decision, events store.Ranges) store.DeadLetter {
	l := store.DeadLetter{ID: s.batch.Batch, Reason: reason, Status: d.status, Error: bus.ShownError(d.err, d.public), Events: events}
	if events != nil {
		l.ID = bus.NewBatchID()
	}
	return l
}
