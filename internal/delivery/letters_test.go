package delivery

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/wire"
)

func TestManyRejectedEventsMakeFewLetters(t *testing.T) {
	some := func(n int, reason func(i int) string) (rejected []wire.Rejection) {
		for i := range n {
			rejected = append(rejected, wire.Rejection{Index: i, Reason: reason(i)})
		}
		return rejected
	}
	each := func(i int) string { return fmt.Sprint("reason ", i) }
	one := func(int) string { return "one" }
	count := func(all []rejections) (letters, events int) {
		for _, together := range all {
			events += len(together.indexes)
		}
		return len(all), events
	}
	for _, c := range []struct {
		rejected []wire.Rejection
		letters  int
	}{
		{some(maxLetters, one), maxLetters}, {some(maxLetters, each), maxLetters},
		{some(10_000, one), 1}, {some(10_000, each), maxLetters},
		{some(10_000, func(i int) string { return fmt.Sprint(i % 3) }), 3},
	} {
		letters, events := count(lettersOf(c.rejected))
		assert.Equal(t, c.letters, letters)
		assert.Len(t, c.rejected, events, "each dies once")
	}
	all := lettersOf(some(maxLetters+1, each))
	assert.Equal(t, rejections{"reason 0", []int{0}}, all[0])
	assert.Equal(t, rejections{"", []int{maxLetters - 1, maxLetters}}, all[maxLetters-1])
}

func TestABatchThatIsRetriedByReceiptsDiesOfAge(t *testing.T) {
	q := newQueued(t, 3, bus.Options{Partial: true, DeadLetters: &bus.DeadLetters{Age: time.Minute}})
	q.age = time.Hour
	d := q.attempt(3, func([]int) outbound.Attempt {
		return outbound.Attempt{Status: 207, Body: []byte(`{"retry_from":0}`), BodyComplete: true}
	})
	assert.Equal(t, bus.OutcomeDead, d.outcome)
	assert.Equal(t, []int{1, 2, 3}, q.dead)
	assert.Equal(t, bus.DiedOfAge, q.letters[0].Reason)
}

// TestAnOutageCondemnsNothing fails in each way that is the endpoint's, and not the batch's.
func TestAnOutageCondemnsNothing(t *testing.T) {
	const noAnswer = 0
	for _, status := range []int{
		noAnswer, 101, 301, 302, 307, 401, 403, 404, 405, 407, 408, 410, 421, 425, 429, 502, 503, 504, 599,
	} {
		q := newQueued(t, 2, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 3, Age: time.Hour}})
		q.attempt(2, refuses(400, 1))
		for range 50 {
			d := q.attempt(2, refuses(status, 1))
			assert.Equal(t, bus.EndpointFailure, d.Failure, status)
		}
		assert.Equal(t, 1, q.state.Refusals, status)
		assert.Zero(t, q.state.Suspect, status)
		q.attempt(2, refuses(200))
		assert.Equal(t, []int{1, 2}, q.gone, status)
		assert.Empty(t, q.letters, status)
	}
}

// TestWhatIsTooLargeIsHalved has an endpoint take no more than seven events at once.
func TestWhatIsTooLargeIsHalved(t *testing.T) {
	q := newQueued(t, 100, bus.Options{DeadLetters: &bus.DeadLetters{}})
	for len(q.left) > 0 {
		require.Less(t, q.attempts, 200)
		q.attempt(100, func(sent []int) outbound.Attempt {
			if len(sent) > 7 {
				return refuses(413, sent[0])(sent)
			}
			return refuses(200)(sent)
		})
	}
	assert.Equal(t, numbers(1, 100), q.gone)
	assert.Empty(t, q.letters)
}

func TestASingleEventIsRefusedForGoodOnce(t *testing.T) {
	for _, status := range []int{413, 422} {
		q := newQueued(t, 1, bus.Options{DeadLetters: &bus.DeadLetters{Attempts: 20}})
		q.attempt(1, refuses(status, 1))
		assert.Equal(t, []int{1}, q.dead, status)
		assert.Equal(t, bus.DiedRefused, q.letters[0].Reason)
	}
}

func TestALetterDoesNotSayHowAPrivateAddressFails(t *testing.T) {
	for _, c := range []struct {
		err, want string
		public    bool
	}{
		{bus.ErrorRefused, bus.ErrorUnreachable, false}, {bus.ErrorTimeout, bus.ErrorUnreachable, false},
		{bus.ErrorRefused, bus.ErrorRefused, true}, {bus.ErrorTLS, bus.ErrorTLS, false},
	} {
		q := newQueued(t, 1, bus.Options{DeadLetters: &bus.DeadLetters{Age: time.Minute}})
		q.age = time.Hour
		q.attempt(1, func([]int) outbound.Attempt {
			return outbound.Attempt{Err: errors.New(c.err), Error: c.err, Public: c.public}
		})
		require.Len(t, q.letters, 1)
		assert.Equal(t, c.want, q.letters[0].Error)
	}
}
