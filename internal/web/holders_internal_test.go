package web

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestAPageFindsAHolderOnce(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it makes handlers of one partition")
	f := storetest.NewBus(t, rdbtest.Embedded(t))
	h := &subscriberHandlers{stores: store.NewBus(f.Store), partitions: []subscriberPartition{{inspector: inspect.Of(f.Store)}}}
	request := httptest.NewRequestWithContext(t.Context(), "GET", "/subscriber", nil)
	one, next := withHolders(request), withHolders(request)
	_, err := h.holder(one, storetest.Alice)
	require.ErrorIs(t, err, bus.ErrNotSubscribed)
	f.AddSubscriber(storetest.Alice, time.Hour, 3, "widgets")
	holder, err := h.holder(one, storetest.Alice)
	require.NoError(t, err, "only who was found is remembered")
	require.Equal(t, storetest.Alice, holder)
	require.NoError(t, f.DeleteSubscriber(t.Context(), storetest.Alice))
	holder, err = h.holder(one, storetest.Alice)
	require.NoError(t, err)
	require.Equal(t, storetest.Alice, holder)
	_, err = h.holder(next, storetest.Alice)
	require.ErrorIs(t, err, bus.ErrNotSubscribed)
	_, err = h.holder(request, storetest.Alice)
	require.ErrorIs(t, err, bus.ErrNotSubscribed)
}
