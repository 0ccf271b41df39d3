package maintenance_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestAutodropTendsAccounts makes clients keep data in several partitions of one Redis, some of it
// expired. In every partition a client's limit is the same, and counts its bytes in all partitions.
func TestAutodropTendsAccounts(t *testing.T) {
	ctx := t.Context()
	p := storetest.NewPartitions(t, rdbtest.Real(t).Open(t)) // the embedded engine does not report its memory
	limits := bus.MemoryLimits{Max: 1_000_000_000, MinFree: 100_000_000}
	_, high, _ := limits.Marks(0)
	expires := func(ms int) string { return fmt.Sprintf("@%d/shop", storetest.After(ms).UnixMilli()) }
	for i, fields := range [][]any{
		{"shop", 1000, "#shop", 7, "*", 1000, expires(-1), 300, expires(1), 500},
		{"shop", 2000, "*", 2000},
		{"mail", 400, "*", 400, "@1/mail", 100, "@", 7, "@none/mail", 50, "@1/*", 60, "@2/mail", -70, "@3/mail", "1e3", "@1/~x", 80},
	} {
		st := p.Data[i]
		require.NoError(t, st.Partition().HSet(ctx, layout.Keys{Namespace: st.Partition().Namespace()}.Accounts(), fields...).Err())
	}
	tend := func() (all []account.Accounts) {
		for range 2 { // in the second run the others' bytes are known, because they have released expired ones
			for _, st := range p.Data {
				keeper := maintenance.New(p.Bus, st, storetest.NewQueue(st, 1), limits, nil, slog.New(slog.DiscardHandler), p.Now)
				require.Equal(t, queue.Done, keeper.Autodrop(ctx, nil))
			}
		}
		for _, st := range p.Data {
			accounts, err := account.Read(ctx, st.Partition())
			require.NoError(t, err)
			all = append(all, accounts)
		}
		return all
	}
	requireLimits := func(all []account.Accounts, shop, mail int64) {
		t.Helper()
		for i, a := range all {
			for client, kept := range map[bus.ClientName]int64{"shop": shop, "mail": mail} {
				assert.Equal(t, kept, a.Kept[client]+a.Elsewhere[client], "%s, from partition %d", client, i)
				limit, ok := a.Limit(client)
				assert.True(t, ok)
				assert.Equal(t, (high-(shop+mail-kept))/2, limit, "%s in partition %d", client, i)
			}
		}
	}
	all := tend()
	requireLimits(all, 2700, 300)
	assert.EqualValues(t, []int64{700, 2000, 300}, []int64{all[0].Total, all[1].Total, all[2].Total})
	p.MS = 2
	requireLimits(tend(), 2200, 300)
	left, err := p.Data[0].Partition().HKeys(ctx, layout.Keys{Namespace: p.Data[0].Partition().Namespace()}.Accounts()).Result()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"shop", "#shop", "*", "*high", "*elsewhere", "~shop", "~mail"}, left)
}
