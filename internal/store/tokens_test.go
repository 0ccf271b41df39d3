package store_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestATokenIsOfOneClient has several clients ask for one token at the same time.
func TestATokenIsOfOneClient(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.Open(t, server)
		ctx := t.Context()
		clients := []bus.ClientName{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, token := range []bus.Token{"one", "two", "three"} {
			var asking sync.WaitGroup
			var got atomic.Value
			var refused atomic.Int32
			for _, name := range clients {
				asking.Go(func() {
					if err := st.PutToken(ctx, token, name); err != nil {
						assert.ErrorIs(t, err, bus.ErrTokenTaken)
						refused.Add(1)
						return
					}
					got.Store(name)
				})
			}
			asking.Wait()
			assert.Equal(t, len(clients)-1, int(refused.Load()))
			name, err := st.ClientName(ctx, token)
			require.NoError(t, err)
			assert.Equal(t, got.Load(), name)
			require.NoError(t, st.PutToken(ctx, token, name), "it has it already")
			require.NoError(t, st.DeleteToken(ctx, token))
			require.NoError(t, st.PutToken(ctx, token, "other"))
		}
	})
}
