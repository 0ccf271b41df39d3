package web_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// TestRoundTripsOfReads counts the round trips to Redis that show a client its subscriber and its
// queue.
func TestRoundTripsOfReads(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it counts what Redis reads, and a node reads what other nodes send")
	server := rdbtest.Real(t)
	a := newSubscriberAPI(t, server)
	requireTrips := func(client string, status, batches int, when string) {
		t.Helper()
		for path, want := range map[string]int{"": status, "/batches": batches, "/batches?limit=1": batches} {
			get := func() { require.Equal(t, 200, a.Do(client, "GET", "/subscriber"+path, "").Status) }
			var trips int
			for range 10 { // so that there is a connection, and the token is known
				get() // so that there is a connection, and the token is known
				before := server.Reads(t)
				get()
				if trips = server.Reads(t) - before - 1; trips <= want {
					break
				}
			}
			assert.Equal(t, want, trips, "%s: %s", when, path)
		}
	}
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","timeout":100000}`)
	requireTrips(alice, 1, 2, "nothing is queued")
	a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(1, 250))
	for _, worker := range []bus.WorkerID{"w1", "w2"} { // two batches are due, and one at a time is delivered
		_, err := a.Acquire(t.Context(), bus.QueueMain, worker, bus.Failing, time.Now())
		require.NoError(t, err)
	}
	requireTrips(alice, 2, 4, "one batch is in flight, one waits, one is current")
	_, _, err := a.Of(alice).RotateToken(t.Context(), alice, "alice--2")
	require.NoError(t, err)
	requireTrips(alice, 3, 5, "the token is rotated")

	a.RequireDone(bob, "POST", "/subscription",
		`{"topics":["gadgets"],"callback":"https://b.example/","timeout":100000,"lanes":4,"strict_order":true}`)
	a.RequireDone(alice, "POST", "/topics/gadgets", webtest.EventsText(1, 4))
	requireTrips(bob, 3, 6, "there are several lanes, in strict order")
}
