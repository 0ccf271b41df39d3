package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// queued is a batch of numbered events, as the store would have it, with the result of each.
type queued struct {
	t        *testing.T
	compiled *compiledOptions
	state    store.Basis
	// left are the events in the batch.
	left []int
	// gone and dead are the events that left it: acknowledged or dropped, and dead.
	gone, dead []int
	letters    []store.DeadLetter
	attempts   int
	// age is how long ago the first event came.
	age time.Duration
	// ids are the contents that were sent under an ID.
	ids map[string]string
}

func newQueued(t *testing.T, events int, options bus.Options) *queued {
	q := &queued{t: t, compiled: &compiledOptions{options: options}, ids: map[string]string{}}
	for i := range events {
		q.left = append(q.left, i+1)
	}
	return q
}

// attempt delivers the next slice, of at most a number of events, and applies the decision. Answer
// is the endpoint's response to some events.
func (q *queued) attempt(limit int, answer func(events []int) outbound.Attempt) *decision {
	q.t.Helper()
	count := min(len(q.left), limit)
	if s := q.state.Suspect; s > 0 {
		count = min(count, (s+1)/2)
	}
	q.state.Total, q.state.Count = len(q.left), count
	state := q.state
	batch := &store.Delivery{Batch: "AAAABBBBCCCCDDDDAAAB", Attempts: 2, Health: 100, CreatedAt: now.Add(-q.age), Basis: &state}
	s := &slice{batch: batch, compiled: q.compiled, payload: payload{events: make([]wire.PackedEvent, count), taken: count}}
	s.sign(count, now)
	sent := slices.Clone(q.left[:count])
	content := fmt.Sprint(sent)
	if before, known := q.ids[s.webhookID]; known {
		require.Equal(q.t, before, content, "an ID stands for one content")
	}
	q.ids[s.webhookID] = content
	q.attempts++
	d := policy.decide(s, answer(sent), now, 0)
	q.apply(d, sent)
	return d
}

// apply applies a decision as the scripts do.
func (q *queued) apply(d *decision, sent []int) {
	q.t.Helper()
	leaving := map[int]bool{}
	for _, r := range d.Slice.Removed {
		for i := r.First; i <= r.Last; i++ {
			leaving[q.left[i]] = true
		}
	}
	for _, l := range d.Slice.Letters {
		q.letters = append(q.letters, l)
		for _, r := range l.Events {
			for i := r.First; i <= r.Last; i++ {
				q.dead = append(q.dead, q.left[i])
				require.True(q.t, leaving[q.left[i]] || d.retryAt.IsZero(), "it would be in two places")
			}
		}
	}
	whole := slices.ContainsFunc(d.Slice.Letters, func(l store.DeadLetter) bool { return l.Events == nil })
	rest := slices.DeleteFunc(slices.Clone(q.left), func(i int) bool { return leaving[i] })
	for _, i := range sent {
		if (leaving[i] || d.retryAt.IsZero() && !whole) && !slices.Contains(q.dead, i) {
			q.gone = append(q.gone, i)
		}
	}
	if d.retryAt.IsZero() {
		if whole {
			q.dead = append(q.dead, rest...)
		} else {
			require.Len(q.t, sent, len(q.left), "what was not sent is complete")
		}
		rest = nil
	}
	if len(d.Slice.Removed) > 0 {
		q.state.Revision++
	}
	if f := d.Slice.Findings; f != nil {
		q.state.Refusals, q.state.Suspect = f.Refusals, f.Suspect
	}
	q.left = rest
}

// refuses answers with a status if one of some events is among those sent.
func refuses(status int, culprits ...int) func([]int) outbound.Attempt {
	return func(sent []int) outbound.Attempt {
		for _, culprit := range culprits {
			if slices.Contains(sent, culprit) {
				return outbound.Attempt{Status: status, Err: errors.New(http.StatusText(status))}
			}
		}
		return outbound.Attempt{Status: 200}
	}
}

func numbers(from, to int) (all []int) {
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

func TestBisectionFindsExactlyWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		events   int
		limit    int // of events in a delivery
		status   int
		culprits []int
	}{
		{1, 100, 400, []int{1}},
		{2, 100, 400, []int{1}},
		{2, 100, 422, []int{2}},
		{8, 100, 422, []int{5}},
		{100, 100, 400, []int{61}},
		{100, 100, 500, []int{1}},
		{100, 100, 400, []int{100}},
		{100, 100, 400, []int{5, 93}},
		{100, 100, 400, []int{5, 6}},
		{100, 100, 422, numbers(1, 100)},
		{100, 7, 422, []int{1, 8, 50, 100}},
		{1000, 300, 413, []int{999}},
	} {
		name := fmt.Sprintf("%d of %d: %v by %d", c.events, c.limit, c.culprits, c.status)
		q := newQueued(t, c.events, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 2}})
		for len(q.left) > 0 && q.attempts < 3000 {
			q.attempt(c.limit, refuses(c.status, c.culprits...))
		}
		assert.Empty(t, q.left, name)
		slices.Sort(q.dead)
		assert.Equal(t, c.culprits, q.dead, name)
		assert.True(t, slices.IsSorted(q.gone), name)
		assert.Len(t, q.gone, c.events-len(c.culprits), name)
		for _, letter := range q.letters {
			want := bus.DiedOfAttempts
			if bus.IsFinal(c.status) {
				want = bus.DiedRefused
			}
			assert.Equal(t, want, letter.Reason, name)
			assert.Equal(t, c.status, letter.Status, name)
			assert.Contains(t, q.ids, letter.WebhookID, "%s: it was sent alone", name)
		}
		if c.limit >= c.events && len(c.culprits) == 1 {
			search := int(math.Ceil(math.Log2(float64(c.events)))) + 1
			assert.LessOrEqual(t, q.attempts, 2+2*search, name)
		}
	}
}

func TestBisectionGoesOnAfterAnOutage(t *testing.T) {
	q := newQueued(t, 100, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 1}})
	outages := 0
	for len(q.left) > 0 {
		require.Less(t, q.attempts, 100)
		before := q.state
		if q.attempts%2 == 1 {
			d := q.attempt(100, refuses(503, numbers(1, 100)...))
			assert.Equal(t, before.Suspect, q.state.Suspect)
			assert.Equal(t, before.Refusals, q.state.Refusals)
			assert.Equal(t, bus.EndpointFailure, d.Failure)
			outages++
			continue
		}
		q.attempt(100, refuses(400, 61))
	}
	assert.Equal(t, []int{61}, q.dead)
	assert.Greater(t, outages, 5)
}

func TestARefusalBeforeItIsCondemned(t *testing.T) {
	q := newQueued(t, 3, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 3}})
	for refusals := 1; refusals <= 2; refusals++ {
		d := q.attempt(100, refuses(400, 2))
		assert.Equal(t, refusals, q.state.Refusals)
		assert.Equal(t, bus.BatchFailure, d.Failure)
		assert.Equal(t, -2, d.Health)
		assert.Len(t, q.left, 3)
	}
	q.attempt(100, refuses(400, 2))
	assert.Equal(t, 3, q.state.Suspect)
}

func TestWhatIsRefusedForGoodCostsNoHealth(t *testing.T) {
	q := newQueued(t, 8, bus.Options{DeadLetters: &bus.DeadLetters{}})
	d := q.attempt(100, refuses(422, 5))
	assert.Equal(t, 8, q.state.Suspect)
	assert.Zero(t, d.Health)
	assert.Zero(t, d.Failure)
	assert.Zero(t, d.ThrottledUntil)
	assert.Equal(t, now.Add(200*time.Millisecond), d.retryAt)
}

func TestAgeEndsABatchWhateverFails(t *testing.T) {
	for _, status := range []int{503, 400, 422} {
		s := &slice{
			batch:    &store.Delivery{Batch: "b", Attempts: 2, Health: 100, CreatedAt: now.Add(-time.Hour), Basis: &store.Basis{Total: 8, Count: 4}},
			compiled: &compiledOptions{options: bus.Options{DeadLetters: &bus.DeadLetters{Age: time.Minute, Attempts: 100}}},
			payload:  payload{events: make([]wire.PackedEvent, 4), taken: 4},
		}
		d := policy.decide(s, refuses(status, 1)([]int{1}), now, 0)
		assert.True(t, d.retryAt.IsZero(), status)
		require.Len(t, d.Slice.Letters, 1, status)
		assert.Equal(t, bus.DiedOfAge, d.Slice.Letters[0].Reason)
		assert.Nil(t, d.Slice.Letters[0].Events, "all of it")
		assert.Equal(t, bus.BatchID("b"), d.Slice.Letters[0].ID)
		assert.Equal(t, bus.OutcomeDead, d.outcome)
	}
}

func TestWithoutDeadLettersABatchIsTriedForEver(t *testing.T) {
	q := newQueued(t, 3, bus.Options{})
	for range 50 {
		d := q.attempt(100, refuses(422, 2))
		assert.Equal(t, bus.BatchFailure, d.Failure)
		assert.Equal(t, -2, d.Health)
		assert.Nil(t, d.Slice.Findings)
	}
	assert.Len(t, q.left, 3)
	assert.Empty(t, q.letters)
}

// receipt answers with a receipt.
func receipt(t *testing.T, r map[string]any) func([]int) outbound.Attempt {
	text, err := json.Marshal(r)
	require.NoError(t, err)
	return func([]int) outbound.Attempt {
		return outbound.Attempt{Status: 207, Body: text, BodyComplete: true}
	}
}

func TestAReceiptKeepsWhatItNames(t *testing.T) {
	q := newQueued(t, 10, bus.Options{Partial: true})
	d := q.attempt(100, receipt(t, map[string]any{"retry": []int{3, 7}}))
	assert.Equal(t, []int{4, 8}, q.left)
	assert.Equal(t, bus.OutcomePartial, d.outcome)
	assert.Equal(t, 8, d.Delivered)
	assert.Equal(t, 1, d.Health)
	assert.Zero(t, d.Failure)
	assert.Zero(t, d.ThrottledUntil)
	assert.Equal(t, now.Add(400*time.Millisecond), d.retryAt)
	assert.False(t, d.Slice.KeepTurn)

	d = q.attempt(100, receipt(t, map[string]any{"retry_from": 0}))
	assert.Equal(t, []int{4, 8}, q.left)
	assert.Equal(t, bus.OutcomeFailed, d.outcome)
	assert.Equal(t, -2, d.Health)
	assert.Equal(t, bus.BatchFailure, d.Failure)
	assert.Error(t, d.failure())

	d = q.attempt(100, receipt(t, map[string]any{}))
	assert.Equal(t, bus.OutcomeAcknowledged, d.outcome)
	assert.Empty(t, q.left)
}

// TestOnlyA207WithPartialIsAReceipt has answers acknowledge all, whatever their body says.
func TestOnlyA207WithPartialIsAReceipt(t *testing.T) {
	for status, partial := range map[int]bool{200: true, 204: true, 207: false} {
		q := newQueued(t, 3, bus.Options{Partial: partial})
		d := q.attempt(100, func([]int) outbound.Attempt {
			return outbound.Attempt{Status: status, Body: []byte(`{"retry":[0]}`), BodyComplete: true}
		})
		assert.Equal(t, bus.OutcomeAcknowledged, d.outcome, status)
		assert.Equal(t, 3, d.Delivered, status)
		assert.Empty(t, q.left, status)
	}
}

func TestARetryOfTheReceiptWaitsAsAsked(t *testing.T) {
	q := newQueued(t, 2, bus.Options{Partial: true, StrictOrder: true})
	d := q.attempt(100, func([]int) outbound.Attempt {
		return outbound.Attempt{Status: 207, Body: []byte(`{"retry":[1]}`), BodyComplete: true, RetryAfter: 2 * time.Second}
	})
	assert.Equal(t, now.Add(2*time.Second), d.retryAt)
	assert.True(t, d.Slice.KeepTurn)
}

func TestWhatAReceiptRejects(t *testing.T) {
	rejecting := receipt(t, map[string]any{"reject": []any{map[string]any{"index": 2, "reason": "no such account"}, 0}, "retry": []int{1}})
	q := newQueued(t, 4, bus.Options{Partial: true, DeadLetters: &bus.DeadLetters{}})
	d := q.attempt(100, rejecting)
	assert.Equal(t, []int{2}, q.left)
	assert.Equal(t, []int{1, 3}, q.dead)
	assert.Equal(t, "no such account", q.letters[1].Note)
	assert.Equal(t, bus.DiedRejected, q.letters[1].Reason)
	assert.Empty(t, q.letters[1].WebhookID, "it was not sent alone")
	assert.Equal(t, 1, d.Delivered)

	q = newQueued(t, 4, bus.Options{Partial: true})
	d = q.attempt(100, rejecting)
	assert.Equal(t, []int{2}, q.left)
	assert.Empty(t, q.letters)
	assert.Equal(t, 2, d.Slice.Lost)

	q = newQueued(t, 2, bus.Options{Partial: true, DeadLetters: &bus.DeadLetters{}})
	d = q.attempt(100, receipt(t, map[string]any{"reject": []int{0, 1}}))
	assert.Empty(t, q.left)
	assert.Len(t, q.letters, 2)
	assert.True(t, d.Works)
	assert.Equal(t, 1, d.Health, "the endpoint works")
}

func TestTheRemainderOfReceiptsDiesAsItIsNamed(t *testing.T) {
	for _, limit := range []int{100, 5} {
		q := newQueued(t, 10, bus.Options{Partial: true, DeadLetters: &bus.DeadLetters{Attempts: 3}})
		for range 3 {
			q.attempt(limit, receipt(t, map[string]any{"retry": []int{0}}))
		}
		assert.Equal(t, []int{1}, q.dead, limit)
		require.Len(t, q.letters, 1)
		assert.Equal(t, bus.DiedOfAttempts, q.letters[0].Reason)
	}
}

func TestAnUnreadableReceiptCondemnsNothing(t *testing.T) {
	q := newQueued(t, 10, bus.Options{Partial: true, DeadLetters: &bus.DeadLetters{Attempts: 3}})
	for i := range 50 {
		answer, why := receipt(t, map[string]any{"failed": []int{1}}), "/failed"
		if i%2 == 1 { // it would be a receipt, had it come whole
			answer, why = func([]int) outbound.Attempt {
				return outbound.Attempt{Status: 207, Body: []byte(`{}`), BodyErr: errors.New("breaks off")}
			}, "the receipt breaks off"
		}
		d := q.attempt(100, answer)
		assert.Equal(t, bus.ErrorReceipt, d.err)
		assert.Equal(t, 207, d.status)
		assert.Equal(t, bus.EndpointFailure, d.Failure)
		assert.ErrorContains(t, d.failure(), why)
	}
	assert.Len(t, q.left, 10)
	assert.Empty(t, q.letters)
}

func TestSlicesFollowAtOnceAndKeepTheirTurn(t *testing.T) {
	q := newQueued(t, 10, bus.Options{MaxBytes: 1024})
	d := q.attempt(4, refuses(500))
	assert.Equal(t, now, d.retryAt)
	assert.True(t, d.Slice.KeepTurn)
	assert.Equal(t, numbers(5, 10), q.left)
	q.attempt(4, refuses(500))
	d = q.attempt(4, refuses(500))
	assert.True(t, d.retryAt.IsZero())
	assert.Equal(t, numbers(1, 10), q.gone)
}

func TestUnusedPaceIsGivenBack(t *testing.T) {
	options := bus.Options{MaxEventsPerMinute: 600, MaxRequestsPerMinute: 60, MaxBytes: 1024}
	s := &slice{batch: &store.Delivery{Basis: &store.Basis{Total: 100, Count: 25}}, compiled: &compiledOptions{options: options}, payload: payload{taken: 15}}
	assert.Equal(t, time.Second, s.unusedPace(), "25 events were counted as 2.5 s, 15 take 1.5 s")
	s.taken = 5
	assert.Equal(t, 1500*time.Millisecond, s.unusedPace(), "a request takes a second in any case")
}

func TestATestIsTriedOnce(t *testing.T) {
	for _, answer := range []func([]int) outbound.Attempt{refuses(500, 1), refuses(200)} {
		q := newQueued(t, 1, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 1}})
		q.state.Test = true
		d := q.attempt(100, answer)
		assert.Empty(t, q.left)
		assert.Empty(t, q.letters)
		assert.Equal(t, store.DeliveryResult{Slice: &store.SliceResult{}}, d.DeliveryResult)
	}
}

func TestRangesOfASliceWithUnreadableEvents(t *testing.T) {
	s := &slice{payload: payload{events: make([]wire.PackedEvent, 3), taken: 6, indexes: []int{1, 3, 4}}}
	assert.Equal(t, "3-4", s.ranges([]int{1, 2}).String())
	assert.Equal(t, "0-2 5-5", s.without([]int{1, 2}).String())
	assert.Equal(t, "0-5", s.all().String())
}

// TestAnAttemptInDoubtDoesNotCount has a connection that was used before be silent: the batch comes
// up again at once, with options or without, and nothing is held against its subscriber.
func TestAnAttemptInDoubtDoesNotCount(t *testing.T) {
	doubtful := outbound.Attempt{Err: errors.New("no answer"), Error: bus.ErrorTimeout, Reused: true, Doubtful: true}
	old := &bus.DeadLetters{Age: time.Minute, Attempts: 1}
	for name, of := range map[string]*store.Basis{"no options": nil, "options": {Total: 2, Count: 2}} {
		batch := &store.Delivery{Attempts: 7, Health: 100, CreatedAt: now.Add(-time.Hour), Basis: of}
		s := &slice{batch: batch, compiled: noOptions, payload: payload{events: make([]wire.PackedEvent, 2), taken: 2}}
		if of != nil {
			s.compiled = &compiledOptions{options: bus.Options{DeadLetters: old}}
		}
		d := policy.decide(s, doubtful, now, 0)
		assert.Equal(t, now, d.retryAt, name)
		assert.Equal(t, bus.OutcomeFailed, d.outcome, "it is on record")
		assert.Equal(t, bus.ErrorTimeout, d.err)
		want := store.DeliveryResult{}
		if of != nil {
			want.Slice = &store.SliceResult{KeepTurn: true}
		}
		assert.Equal(t, want, d.DeliveryResult, name)
	}
}
