package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestACallThatIsGivenUpIsNoOutage gives Redis less time than it takes.
func TestACallThatIsGivenUpIsNoOutage(t *testing.T) {
	server := storetest.Real(t)
	changes := make(chan error, 10)
	st := server.Open(t, func(o *store.Options) { o.OnLink = func(err error) { changes <- err } })
	require.NoError(t, st.Ping(t.Context()))
	server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := st.Snapshot(ctx, time.Now())
	require.ErrorIs(t, err, bus.ErrUnavailable)
	server.Thaw(t)
	require.NoError(t, st.Ping(t.Context()))
	assert.Empty(t, changes, "it says nothing of Redis that somebody else has little time")
}
