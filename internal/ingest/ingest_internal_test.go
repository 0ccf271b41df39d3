package ingest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// Waiting is how many requests wait for the next commit of the first home.
func (i *Ingest) Waiting() int { return i.homes[0].queue.Waiting() }

func TestThePublisherOfACounterIsNoSecret(t *testing.T) {
	for token, want := range map[bus.Token]string{"shop--1": "shop", "secret": "malformed", "--secret": "malformed", "": "null"} {
		assert.Equal(t, want, publisherOf(token), token)
	}
}

func TestGroups(t *testing.T) {
	of := func(topic bus.TopicName, publisher bus.Token, key *bus.IdempotencyKey, events int) *request {
		return newRequest(store.Publication{Topic: topic, Publisher: publisher, IdempotencyKey: key, Events: make([]wire.PackedEvent, events)})
	}
	key := &bus.IdempotencyKey{Key: "key"}
	for _, c := range []struct {
		name     string
		requests []*request
		want     []int // requests of each group
	}{
		{"alike", []*request{of("w", "a", nil, 1), of("w", "a", nil, 2)}, []int{2}},
		{"several topics", []*request{of("w", "a", nil, 1), of("g", "a", nil, 1), of("w", "a", nil, 1)}, []int{2, 1}},
		{"two publishers take turns", []*request{of("w", "a", nil, 1), of("w", "b", nil, 1), of("w", "a", nil, 1)}, []int{1, 1, 1}},
		{"a key has a group of its own", []*request{of("w", "a", nil, 1), of("w", "a", key, 1), of("w", "a", nil, 1)}, []int{1, 1, 1}},
		{"not too many", []*request{of("w", "a", nil, 60), of("w", "a", nil, 60), of("w", "a", nil, 40)}, []int{1, 2}},
		{"a large one stays whole", []*request{of("w", "a", nil, 1000), of("w", "a", nil, 1)}, []int{1, 1}},
	} {
		var got []int
		events := 0
		for _, g := range groupRequests(c.requests) {
			got = append(got, len(g.requests))
			events += len(g.publication.Events)
		}
		assert.Equal(t, c.want, got, c.name)
		for _, r := range c.requests {
			events -= len(r.publication.Events)
		}
		assert.Zero(t, events, c.name)
	}
}

func TestAPanicFailsTheRequests(t *testing.T) {
	in := home{} // it panics when it is to store
	requests := []*request{newRequest(store.Publication{}), newRequest(store.Publication{Publisher: "other"})}
	assert.Panics(t, func() { _ = in.commit(t.Context(), requests) })
	for _, r := range requests {
		require.ErrorIs(t, r.err, bus.ErrUnavailable)
	}
}
