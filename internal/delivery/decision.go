package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// bisectInterval is the pause between two attempts to find the event that an endpoint refuses.
const bisectInterval = 200 * time.Millisecond

// decision is the consequence of an attempt.
type decision struct {
	store.DeliveryResult
	// retryAt is when the batch comes up again; zero if nothing of it is left.
	retryAt time.Time
	outcome bus.Outcome
	// status is the HTTP status of the response. err is the class of the error if there was no
	// response, or if it could not be read: then cause says why.
	status int
	err    string
	cause  error
	// public is whether the address was a public one: see [outbound.Attempt].
	public bool
	// acknowledged, retried and rejected are the numbers of events of a receipt.
	acknowledged, retried, rejected int
}

// result is the decision as the queue takes it.
func (d *decision) result() queue.Result {
	return queue.Result{RetryAt: d.retryAt, Detail: d.DeliveryResult}
}

// decide decides the consequences of an attempt to deliver a slice. Chance, in [0, 1), spreads the
// retries.
func (p Policy) decide(s *slice, attempt outbound.Attempt, now time.Time, chance float64) *decision {
	d := &decision{status: attempt.Status, err: attempt.Error, cause: attempt.Err, public: attempt.Public}
	d.DeliveryResult.Slice = s.result()
	switch {
	case attempt.Doubtful:
		d.doubted(now)
	case attempt.Err != nil:
		d.outcome = bus.OutcomeFailed
		p.failed(d, s, attempt, now, chance)
	case attempt.Status == http.StatusMultiStatus && s.compiled.options.Partial:
		p.receive(d, s, attempt, now, chance)
	default:
		p.acknowledged(d, s, now)
		if s.batch.Basis == nil {
			d.Ahead = ahead(s.batch.Ahead, attempt.Duration)
		}
	}
	if s.isTest() { // it is tried once, and only its record tells
		tested := store.DeliveryResult{Slice: &store.SliceResult{}}
		d.retryAt, d.DeliveryResult = time.Time{}, tested
	}
	return d
}

// result is the part of a result that is stored after every attempt; nil if the batch's subscriber
// has no options.
func (s *slice) result() *store.SliceResult {
	if s.batch.Basis == nil {
		return nil
	}
	return &store.SliceResult{KeepTurn: s.compiled.options.StrictOrder, UnusedPace: s.unusedPace()}
}

// doubted decides about a slice that may have been lost with its connection: the endpoint may not
// be at fault. The batch keeps its turn, and the next attempt, over a new connection, decides.
func (d *decision) doubted(now time.Time) {
	d.outcome, d.retryAt = bus.OutcomeFailed, now
	if d.Slice != nil {
		d.Slice.KeepTurn = true
	}
}

// nothing is the decision about a slice without a readable event.
func (s *slice) nothing(now time.Time) *decision {
	d := &decision{}
	if !s.isRest() {
		d.Slice = s.result()
		d.goOn(s, now)
	}
	return d
}

// goOn removes the slice from its batch, which has more events, and schedules the rest at a time.
func (d *decision) goOn(s *slice, at time.Time) {
	d.retryAt, d.Slice.Removed = at, s.all()
}

// acknowledged decides about a slice that was acknowledged as a whole.
func (p Policy) acknowledged(d *decision, s *slice, now time.Time) {
	d.outcome, d.acknowledged = bus.OutcomeAcknowledged, len(s.events)
	d.Health, d.Delivered = p.HealRate, len(s.events)
	if s.isRest() {
		return
	}
	d.goOn(s, now)
	suspect := s.batch.Basis.Suspect
	if suspect == 0 {
		d.Slice.KeepTurn = true
		return
	}
	// The rest of the suspects has the culprit, unless this was it, and was taken after all.
	d.Slice.Findings = &store.Findings{Refusals: s.batch.Basis.Refusals, Suspect: max(suspect-s.taken, 0)}
	if d.Slice.Findings.Suspect == 0 {
		d.Slice.Findings.Refusals = s.almostCondemned()
	}
}

// almostCondemned is the number of refusals after which one more condemns a batch.
func (s *slice) almostCondemned() int {
	if letters := s.compiled.options.DeadLetters; letters != nil {
		return max(letters.Attempts-1, 0)
	}
	return 0
}

// failed decides about a slice of which no event was accepted.
func (p Policy) failed(d *decision, s *slice, attempt outbound.Attempt, now time.Time, chance float64) {
	d.Health, d.Failure = p.DamageRate, attempt.Failure()
	if attempt.Gone() {
		d.Health = bus.MinHealth - bus.MaxHealth
	}
	p.wait(d, s, attempt, now, chance)
	letters := s.compiled.options.DeadLetters
	switch {
	case letters == nil || s.isTest():
	case s.isTooOld(letters, now):
		d.bury(s, bus.DiedOfAge)
	case d.Failure == bus.BatchFailure:
		d.refused(s, letters, now)
	}
}

// wait decides how long the batch and its subscriber wait after a failure.
func (p Policy) wait(d *decision, s *slice, attempt outbound.Attempt, now time.Time, chance float64) {
	retryAfter := min(attempt.RetryAfter, p.MaxBackoff)
	d.retryAt = now.Add(attempt.Wait(bus.Backoff(s.batch.Attempts, p.MaxBackoff, chance), p.MaxBackoff))
	if d.Works {
		return
	}
	if throttle := p.throttle(s.batch, d.DeliveryResult, retryAfter, now); throttle >= time.Millisecond {
		d.ThrottledUntil = now.Add(throttle)
	}
}

// bury makes dead letters of the rest of a batch.
func (d *decision) bury(s *slice, reason bus.DeathReason) {
	d.retryAt, d.outcome = time.Time{}, bus.OutcomeDead
	letter := s.letter(reason, d, nil)
	if s.isRest() && len(d.Slice.Removed) == 0 {
		letter.WebhookID = s.webhookID
	}
	d.Slice.Letters = append(d.Slice.Letters, letter)
}

// refused decides about a slice that the endpoint refuses. One that is condemned is bisected until
// the event at fault is alone: that one dies.
func (d *decision) refused(s *slice, letters *bus.DeadLetters, now time.Time) {
	final, reason := bus.IsFinal(d.status), bus.DiedOfAttempts
	if final { // the endpoint works
		reason, d.Health, d.Failure, d.ThrottledUntil = bus.DiedRefused, 0, 0, time.Time{}
	}
	basis, refusals := s.batch.Basis, s.batch.Basis.Refusals+1
	if !final && basis.Suspect == 0 && (letters.Attempts == 0 || refusals < letters.Attempts) {
		d.Slice.Findings = &store.Findings{Refusals: refusals}
		return
	}
	d.retryAt = now.Add(bisectInterval)
	switch {
	case len(s.events) > 1:
		d.Slice.Findings = &store.Findings{Refusals: basis.Refusals, Suspect: s.taken}
	case s.isRest():
		d.bury(s, reason)
	default:
		d.outcome = bus.OutcomeDead
		letter := s.letter(reason, d, s.ranges([]int{0}))
		letter.WebhookID = s.webhookID
		d.Slice.Letters = []store.DeadLetter{letter}
		d.Slice.Findings = &store.Findings{Refusals: s.almostCondemned()}
		d.goOn(s, now.Add(bisectInterval))
	}
}

// receive decides about a slice that was answered with a receipt.
func (p Policy) receive(d *decision, s *slice, attempt outbound.Attempt, now time.Time, chance float64) {
	receipt, err := readReceipt(attempt, len(s.events))
	if err != nil { // a bug in the answer, which condemns nothing
		d.outcome, d.err, d.cause = bus.OutcomeFailed, bus.ErrorReceipt, err
		attempt.Err, attempt.Status = err, 0
		p.failed(d, s, attempt, now, chance)
		return
	}
	d.retried, d.rejected = len(receipt.Retry), len(receipt.Rejected)
	d.acknowledged = len(s.events) - d.retried - d.rejected
	if d.retried == 0 && d.rejected == 0 {
		p.acknowledged(d, s, now)
		return
	}
	d.outcome, d.Delivered = bus.OutcomePartial, d.acknowledged
	d.Works, d.Health = true, p.HealRate
	if d.retried == len(s.events) {
		d.outcome, d.Works, d.Health, d.Failure = bus.OutcomeFailed, false, p.DamageRate, bus.BatchFailure
	}
	d.reject(s, receipt.Rejected)
	if d.retried == 0 {
		if !s.isRest() {
			d.goOn(s, now)
			d.Slice.KeepTurn = true
		}
		return
	}
	p.wait(d, s, attempt, now, chance)
	d.retry(s, receipt.Retry, now)
}

// readReceipt reads the receipt for a number of events. A receipt that was not received whole
// acknowledges nothing, though its beginning may look like a valid one.
func readReceipt(attempt outbound.Attempt, events int) (wire.Receipt, error) {
	if !attempt.BodyComplete {
		return wire.Receipt{}, fmt.Errorf("the receipt %w", cmp.Or(attempt.BodyErr, errIncomplete))
	}
	return wire.ParseReceipt(attempt.Body, events)
}

// errIncomplete is the error of an incomplete receipt that did not come over the network.
var errIncomplete = errors.New("is not complete")

// reject makes dead letters of events, each with its note. Without dead letters they are lost; but
// a gap notice that is rejected was read.
func (d *decision) reject(s *slice, rejected []wire.Rejection) {
	if s.compiled.options.DeadLetters == nil {
		if !s.batch.Basis.Gap {
			d.Slice.Lost = len(rejected)
		}
		return
	}
	for _, together := range lettersOf(rejected) {
		letter := s.letter(bus.DiedRejected, d, s.ranges(together.indexes))
		letter.Note = together.reason
		d.Slice.Letters = append(d.Slice.Letters, letter)
	}
}

// maxLetters is how many dead letters one attempt makes at most, so that the step that settles it
// stays short.
const maxLetters = 100

// rejections are events that are rejected for the same reason.
type rejections struct {
	reason  string
	indexes []int
}

// lettersOf groups rejected events into dead letters: one for each event, unless they are many.
// Then events with a common reason share one; if there are many reasons, the rest share one without
// a reason.
func lettersOf(rejected []wire.Rejection) (all []rejections) {
	places := map[string]int{}
	for _, r := range rejected {
		place, known := places[r.Reason]
		switch {
		case known && len(rejected) > maxLetters:
		case len(all) < maxLetters:
			place, all = len(all), append(all, rejections{reason: r.Reason})
			places[r.Reason] = place
		default:
			place = maxLetters - 1
			all[place].reason = ""
		}
		all[place].indexes = append(all[place].indexes, r.Index)
	}
	for _, together := range all {
		slices.Sort(together.indexes)
	}
	return all
}

// retry keeps in the batch the events of the slice that the subscriber has named; all others leave
// it. Events named too often die, without a search for the one at fault.
func (d *decision) retry(s *slice, retry []int, now time.Time) {
	letters, refusals := s.compiled.options.DeadLetters, s.batch.Basis.Refusals+1
	d.Slice.Findings = &store.Findings{Refusals: refusals}
	d.Slice.Removed = s.without(retry)
	if letters != nil && d.outcome == bus.OutcomeFailed && s.isTooOld(letters, now) {
		d.bury(s, bus.DiedOfAge)
		return
	}
	if letters == nil || letters.Attempts == 0 || refusals < letters.Attempts {
		return
	}
	if s.isRest() {
		d.bury(s, bus.DiedOfAttempts)
		return
	}
	d.outcome = bus.OutcomeDead
	d.Slice.Letters = append(d.Slice.Letters, s.letter(bus.DiedOfAttempts, d, s.ranges(retry)))
	d.Slice.Findings = &store.Findings{}
	d.goOn(s, now)
}
