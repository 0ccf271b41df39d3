package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// TestACallThatIsGivenUpIsNoOutage gives Redis less time than it takes.
func TestACallThatIsGivenUpIsNoOutage(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	client := server.Open(t, log.LogTo)
	st := store.New(client.Partition(""), store.Options{})
	require.NoError(t, client.Ping(t.Context()))
	server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := st.Snapshot(ctx, time.Now())
	require.ErrorIs(t, err, bus.ErrUnavailable)
	server.Thaw(t)
	require.NoError(t, client.Ping(t.Context()))
	assert.Empty(t, log.String(), "it says nothing of Redis that somebody else has little time")
}
