package samples

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// keep sets the clients' accounts in a partition, and the limits there.
func keep(t *testing.T, p *rdb.Partition, fields ...any) {
	t.Helper()
	require.NoError(t, p.HSet(t.Context(), layout.Keys{Namespace: p.Namespace()}.Accounts(), fields...).Err())
}

func TestClientsWithMostAreFirst(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Hour, 100, "widgets")
		f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
		f.PublishEvents("widgets", 1, 3, 7)
		sizes, err := f.QueueSizes(ctx)
		require.NoError(t, err)
		queued := sizes[storetest.Alice]
		require.Positive(t, queued)
		clients := func() []overview.Client { return f.Collect(ctx, Look).Clients }
		assert.Equal(t, []overview.Client{{Name: "alice", Queued: queued}}, clients(), "nobody keeps anything")

		keep(t, f.Partition, "alice", 100, "#alice", 2, "shop", 50_000, "root", 1, "*", 50_101)
		assert.Equal(t, []overview.Client{
			{Name: "shop", Kept: 50_000}, {Name: "alice", Kept: 100, Queued: queued}, {Name: "root", Kept: 1},
		}, clients(), "without limits")

		keep(t, f.Partition, "*high", 100_101, "*limit/root", 7)
		assert.Equal(t, []overview.Client{
			{Name: "shop", Kept: 50_000, Limit: new(int64(50_000)), Share: 1},
			{Name: "alice", Kept: 100, Limit: new(int64(25_050)), Share: 100.0 / 25_050, Queued: queued},
			{Name: "root", Kept: 1, Limit: new(int64(7)), Share: 1.0 / 7},
		}, clients())

		for i := range overview.MaxClients {
			keep(t, f.Partition, fmt.Sprintf("many-%02d", i), 60_000)
		}
		all := clients()
		assert.Len(t, all, overview.MaxClients, "the largest")
		assert.Equal(t, "many-00", all[0].Name)

		f.damage("accounts", func() {
			s := f.Collect(ctx, Look)
			assert.Empty(t, s.Unread)
			assert.Equal(t, []overview.Client{{Name: "alice", Queued: queued}}, s.Clients)
		})
	})
}

// TestTheHistoryReadsNoAccounts because it does not show them: it would read them all the time.
func TestTheHistoryReadsNoAccounts(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	keep(t, f.Partition, "shop", 5)
	reads := func(reader Reader) (clients, reads int) {
		before := f.server.Reads(t)
		clients = len(f.Collect(t.Context(), reader).Clients)
		return clients, f.server.Reads(t) - before
	}
	reads(Look) // cached data is not read again
	shown, looking := reads(Look)
	recorded, recording := reads(Record)
	assert.Equal(t, []int{1, 0}, []int{shown, recorded})
	assert.Equal(t, 1, looking-recording, "the accounts and the bytes that are queued, in one round trip")
}

// TestClientsOfAllPartitions has two Redis servers, the first with two partitions.
func TestClientsOfAllPartitions(t *testing.T) {
	nodes := account.Nodes{}
	nodes.Add("a", account.Accounts{
		Limits: account.Limits{High: 100, Elsewhere: map[bus.ClientName]int64{"shop": 39}}, // of before
		Kept:   map[bus.ClientName]int64{"shop": 10, "mail": 20}, Total: 30,
	})
	nodes.Add("a", account.Accounts{Limits: account.Limits{High: 100}, Kept: map[bus.ClientName]int64{"shop": 40}, Total: 40})
	d := &draft{accounts: nodes, queued: map[bus.ClientName]int64{"shop": 1, "slow": 90}}
	named := account.Limits{High: 1000, Clients: account.Clients{Named: map[bus.ClientName]int64{"mail": 6}}}
	d.addAccounts(&draft{
		accounts: account.Nodes{"b": {Limits: named, Kept: map[bus.ClientName]int64{"mail": 5}, Total: 5}},
		queued:   map[bus.ClientName]int64{"shop": 2},
	})
	d.addAccounts(&draft{}) // one that could not be read
	d.addClients()
	assert.Equal(t, []overview.Client{
		{Name: "slow", Queued: 90, Limit: new(int64(15 + 497))},
		{Name: "shop", Kept: 50, Queued: 3, Limit: new(int64(40 + 497)), Share: 50.0 / 40},
		{Name: "mail", Kept: 25, Limit: new(int64(25 + 6)), Share: 5.0 / 6},
	}, d.Clients)
	d.addAccounts(&draft{accounts: account.Nodes{"c": {}}})
	assert.Nil(t, d.accounts.Limit("shop"), "there is no limit there")
}

// TestPartitionsOfOneRedisHaveOneLimit reads three of them.
func TestPartitionsOfOneRedisHaveOneLimit(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		p := storetest.NewPartitions(t, f.server.Open(t))
		for _, st := range p.Data {
			keep(t, st.Partition(), "shop", 100, "*", 100, "*high", 1000, "*elsewhere", 200, "~shop", 200)
		}
		assert.Equal(t, []overview.Client{{Name: "shop", Kept: 300, Limit: new(int64(500)), Share: 0.6}}, f.collectorOf(p.Data...).Collect(t.Context(), Look).Clients)
	})
}
