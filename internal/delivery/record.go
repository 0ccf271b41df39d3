package delivery

import (
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/wire"
)

// attemptRecorder makes the records of attempts.
type attemptRecorder struct {
	// kept is how many records of a subscriber are kept, excerpt how many bytes of an answer.
	kept, excerpt int
	// ofFailures is keepFailure, made once.
	ofFailures func(status int) int
}

func newAttemptRecorder(kept, excerpt int) *attemptRecorder {
	r := &attemptRecorder{kept: kept, excerpt: excerpt}
	r.ofFailures = r.keepFailure
	return r
}

// wants reports whether an attempt of an outcome is recorded.
func (r *attemptRecorder) wants(s *slice, outcome bus.Outcome) bool {
	log := s.compiled.options.LogAttempts
	switch {
	case r.kept == 0:
		return false
	case s.isTest() || log == bus.LogAll:
		return true
	}
	return log == bus.LogFailures && outcome != bus.OutcomeAcknowledged
}

// keepBody is how much of the answer to a slice is kept, see [outbound.Request].
func (r *attemptRecorder) keepBody(s *slice) func(status int) int {
	if s.compiled.options.Partial || s.isTest() {
		return func(status int) int {
			switch {
			case status == http.StatusMultiStatus && s.compiled.options.Partial:
				return wire.MaxReceipt
			case s.isTest():
				return r.excerpt
			}
			return r.keepFailure(status)
		}
	}
	if r.kept == 0 || r.excerpt == 0 || s.compiled.options.LogAttempts == bus.LogNone {
		return nil
	}
	return r.ofFailures
}

func (r *attemptRecorder) keepFailure(status int) int {
	if status/100 == 2 {
		return 0
	}
	return r.excerpt
}

// record is the record of an attempt, nil if there is none, and how many are kept.
func (r *attemptRecorder) record(s *slice, attempt outbound.Attempt, d *decision, start time.Time) (packed []byte, kept int) {
	if !r.wants(s, d.outcome) {
		return nil, 0
	}
	record := wire.AttemptRecord{
		At: start, Batch: s.batch.Batch, Attempt: s.batch.Attempts, Events: len(s.events), Outcome: d.outcome,
		Status: d.status, Error: d.err, Duration: attempt.Duration, RetryAt: d.nextAt(),
		Excerpt: string(attempt.Body[:min(len(attempt.Body), r.excerpt)]), Public: attempt.Public,
		Test: s.isTest(),
	}
	if s.signer != nil {
		record.WebhookID = s.webhookID
	}
	if s.batch.Basis != nil {
		record.Replay = s.batch.Basis.Replay
	}
	if d.cause != nil {
		record.Detail = bus.Reason(d.cause.Error())
	}
	if d.retried+d.rejected > 0 {
		record.Acknowledged, record.Retried, record.Rejected = d.acknowledged, d.retried, d.rejected
	}
	return wire.PackAttempt(record), r.kept
}

// nextAt is when the batch comes up again at the earliest; zero if nothing of it is left.
func (d *decision) nextAt() time.Time {
	if !d.retryAt.IsZero() && d.ThrottledUntil.After(d.retryAt) {
		return d.ThrottledUntil
	}
	return d.retryAt
}
