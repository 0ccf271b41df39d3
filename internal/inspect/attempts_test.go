package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

// note writes a record, as the last of alice's.
func (f *fixture) note(r wire.AttemptRecord) {
	f.T.Helper()
	require.NoError(f.T, f.Redis.LPush(f.T.Context(), keys.Attempts(alice), wire.PackAttempt(r)).Err())
}

// attempts lists all of alice's attempts, in pages of three.
func (f *fixture) attempts(view inspect.View, filter inspect.Filter) (all []wire.AttemptRecord) {
	f.T.Helper()
	for after := ""; ; {
		some, next, err := f.Attempts(f.T.Context(), alice, view, filter, inspect.Page{After: after, Limit: 3})
		require.NoError(f.T, err)
		require.LessOrEqual(f.T, len(some), 3)
		all = append(all, some...)
		if after = next; after == "" {
			return all
		}
	}
}

func TestAttemptsAreListedInPages(t *testing.T) {
	each(t, func(f *fixture) {
		require.Empty(f.T, f.attempts(inspect.ForRoot, inspect.Filter{}))
		for n := 1; n <= 7; n++ {
			outcome := bus.OutcomeFailed
			if n == 7 {
				outcome = bus.OutcomeAcknowledged
			}
			f.note(wire.AttemptRecord{At: storetest.After(n), Batch: aUID, Attempt: n, Outcome: outcome})
		}
		f.note(wire.AttemptRecord{At: storetest.After(8), Batch: "BBBBBBBBBBBBBBBBBBBB", Attempt: 1})
		require.NoError(f.T, f.Redis.LPush(f.T.Context(), keys.Attempts(alice), "not a record").Err())

		numbers := func(filter inspect.Filter) (all []int) {
			for _, r := range f.attempts(inspect.ForClient, filter) {
				all = append(all, r.Attempt)
			}
			return all
		}
		assert.Equal(f.T, []int{1, 7, 6, 5, 4, 3, 2, 1}, numbers(inspect.Filter{}))
		assert.Equal(f.T, []int{7, 6, 5, 4, 3, 2, 1}, numbers(inspect.Filter{Batch: aUID}))
		assert.Equal(f.T, []int{7}, numbers(inspect.Filter{Outcome: bus.OutcomeAcknowledged}))
		assert.Empty(f.T, numbers(inspect.Filter{Outcome: bus.OutcomePartial}))

		_, next, err := f.Attempts(f.T.Context(), alice, inspect.ForRoot, inspect.Filter{}, inspect.Page{Limit: 3})
		require.NoError(f.T, err)
		f.note(wire.AttemptRecord{At: storetest.After(9), Batch: aUID, Attempt: 9})
		some, _, err := f.Attempts(f.T.Context(), alice, inspect.ForRoot, inspect.Filter{}, inspect.Page{After: next, Limit: 3})
		require.NoError(f.T, err)
		assert.Equal(f.T, 5, some[0].Attempt, "a new one moves none")
		_, _, err = f.Attempts(f.T.Context(), alice, inspect.ForRoot, inspect.Filter{}, inspect.Page{After: "x", Limit: 3})
		assert.ErrorAs(f.T, err, new(*bus.Invalid))
	})
}

func TestDamagedAttemptsAreAnError(t *testing.T) {
	each(t, func(f *fixture) {
		require.NoError(f.T, f.Redis.Set(f.T.Context(), keys.Attempts(alice), "x", 0).Err())
		_, _, err := f.Attempts(f.T.Context(), alice, inspect.ForRoot, inspect.Filter{}, inspect.Page{Limit: 10})
		assert.True(f.T, rdb.IsWrongType(err), "%v", err)
	})
}

// TestAttemptsThatLookAlikeAreListedOnce sends slices of a batch within one ms, each as its first
// attempt, so that pages begin between them.
func TestAttemptsThatLookAlikeAreListedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		for n := 1; n <= 8; n++ {
			f.note(wire.AttemptRecord{At: storetest.After(0), Batch: aUID, Attempt: 1, Events: n, Outcome: bus.OutcomeAcknowledged})
		}
		var events []int
		for _, r := range f.attempts(inspect.ForClient, inspect.Filter{}) {
			events = append(events, r.Events)
		}
		assert.Equal(f.T, []int{8, 7, 6, 5, 4, 3, 2, 1}, events)
	})
}

// TestWhatIsSeenOfAnAttempt compares the views of root and of the client for each class of error.
func TestWhatIsSeenOfAnAttempt(t *testing.T) {
	unreachable := []string{bus.ErrorRefused, bus.ErrorUnreachable, bus.ErrorReset, bus.ErrorTimeout, bus.ErrorConnectTimeout}
	others := []string{bus.ErrorDNS, bus.ErrorDenied, bus.ErrorTLS, bus.ErrorProtocol, bus.ErrorSecrets}
	for _, class := range append(unreachable, others...) {
		private := wire.AttemptRecord{Error: class, Detail: "dial tcp 10.0.0.1:443", Duration: time.Second}
		public := private
		public.Public = true
		assert.Equal(t, private, inspect.ForRoot(private), class)
		assert.Equal(t, wire.AttemptRecord{Error: class, Duration: time.Second, Public: true}, inspect.ForClient(public), class)
		want := wire.AttemptRecord{Error: class}
		for _, hidden := range unreachable {
			if hidden == class {
				want = wire.AttemptRecord{Error: bus.ErrorUnreachable}
			}
		}
		assert.Equal(t, want, inspect.ForClient(private), class)
	}

	expired := wire.AttemptRecord{Error: bus.ErrorTLS, Detail: bus.CertificateExpired + ": x509: of 10.0.0.1", Public: true}
	assert.Equal(t, bus.CertificateExpired, inspect.ForClient(expired).Detail)
	expired.Public = false
	assert.Empty(t, inspect.ForClient(expired).Detail)

	answered := wire.AttemptRecord{Status: 500, Excerpt: "no\x00 such\n\xff table\u202e é\\", Duration: time.Second}
	root := inspect.ForRoot(answered)
	assert.Equal(t, `no\x00 such\n`+"\ufffd"+` table\u202e é\`, root.Excerpt)
	client := inspect.ForClient(answered)
	assert.Empty(t, client.Excerpt)
	assert.Equal(t, answered.Duration, client.Duration)
	assert.Equal(t, 500, client.Status)
	answered.Public = true
	assert.Equal(t, root.Excerpt, inspect.ForClient(answered).Excerpt)

	receipt := wire.AttemptRecord{Status: 207, Error: bus.ErrorReceipt, Detail: "/retry/0 is no index"}
	assert.Equal(t, receipt, inspect.ForClient(receipt), "the client sees what is wrong with its own receipt")
}
