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
