package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/stores"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/metrics"
)

// accountsPage reads what a scrape shows of accounts, until it has what it is to have.
func accountsPage(t *testing.T, has string, partitions ...*rdb.Partition) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		registry := metrics.NewRegistry()
		registry.AddAccounts(partitions)
		text = page(t, registry)
		return strings.Contains(text, has)
	}, 30*time.Second, time.Millisecond)
	return text
}

func TestAccountsAreScraped(t *testing.T) {
	server := rdbtest.Real(t)
	p := storetest.Open(t, server).Partition()
	key := account.Keys{}.Accounts()
	server.Raw.HSet(t.Context(), key, "shop", 40, "#shop", 2, "mail", 60, "gone", 0, "*", 100)
	text := accountsPage(t, `routemaster_client_kept_bytes{client="shop"} 40`, p)
	assert.Contains(t, text, `routemaster_client_kept_bytes{client="mail"} 60`)
	assert.NotContains(t, text, "gone")
	assert.NotContains(t, text, "routemaster_client_kept_limit_bytes", "there is none")
	server.Raw.HSet(t.Context(), key, "*high", 200, "*limit/mail", 70)
	text = accountsPage(t, `routemaster_client_kept_limit_bytes{client="mail"} 70`, p)
	assert.Contains(t, text, `routemaster_client_kept_limit_bytes{client="shop"} 70`, "half of what mail leaves")

	registry := metrics.NewRegistry()
	registry.AddAccounts(rdb.Partitions{p})
	before := server.Reads(t)
	page(t, registry)
	page(t, registry)
	assert.Equal(t, 2, server.Reads(t)-before, "the second has what the first has read; to count is one, too")
	server.Kill(t)
	registry = metrics.NewRegistry()
	registry.AddAccounts(rdb.Partitions{p})
	assert.NotContains(t, page(t, registry), "routemaster_client_kept")
}

// TestAccountsOfPartitions has three, whose Redis servers count as one node. One goes away.
func TestAccountsOfPartitions(t *testing.T) {
	all, servers := storetest.Apart(t, 3)
	partitions := stores.New(all...).Partitions()
	for i, p := range partitions {
		require.NoError(t, p.HSet(t.Context(), account.Keys{Namespace: p.Namespace()}.Accounts(), "shop", 10+i, "*limit", 50).Err())
	}
	text := accountsPage(t, `routemaster_client_kept_bytes{client="shop",node="here"} 33`, partitions...)
	assert.Contains(t, text, `routemaster_client_kept_limit_bytes{client="shop",node="here"} 50`)
	servers[1].Kill(t)
	accountsPage(t, `routemaster_client_kept_bytes{client="shop",node="here"} 22`, partitions...)
}
