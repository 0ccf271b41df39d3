package samples_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// accountsPage returns the accounts of a scrape, once it has the given text.
func accountsPage(t *testing.T, has string, all ...*store.Store) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text = page(t, scraped(busOf(all...), time.Now))
		return strings.Contains(text, has)
	}, time.Minute, time.Millisecond)
	return text
}

func TestAccountsAreScraped(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.Open(t, server)
	key := layout.Keys{}.Accounts()
	server.Raw.HSet(t.Context(), key, "shop", 40, "#shop", 2, "mail", 60, "gone", 0, "*", 100)
	text := accountsPage(t, `routemaster_client_kept_bytes{client="shop"} 40`, st)
	assert.Contains(t, text, `routemaster_client_kept_bytes{client="mail"} 60`)
	assert.NotContains(t, text, "gone")
	assert.NotContains(t, text, "routemaster_client_kept_limit_bytes", "there is none")
	server.Raw.HSet(t.Context(), key, "*high", 200, "*limit/mail", 70)
	text = accountsPage(t, `routemaster_client_kept_limit_bytes{client="mail"} 70`, st)
	assert.Contains(t, text, `routemaster_client_kept_limit_bytes{client="shop"} 70`, "half of what mail leaves")

	registry := scraped(busOf(st), time.Now)
	page(t, registry)
	before := server.Reads(t)
	page(t, registry)
	assert.Equal(t, 1, server.Reads(t)-before, "the second has what the first has read; to count is one")
	server.Kill(t)
	assert.NotContains(t, page(t, scraped(busOf(st), time.Now)), "routemaster_client_kept")
}

// TestAccountsOfPartitions has three, whose Redis servers count as one node. One goes away.
func TestAccountsOfPartitions(t *testing.T) {
	all, servers := storetest.Apart(t, 3)
	for i, p := range store.NewBus(all...).Partitions() {
		require.NoError(t, p.HSet(t.Context(), layout.Keys{Namespace: p.Namespace()}.Accounts(), "shop", 10+i, "*limit", 50).Err())
	}
	text := accountsPage(t, `routemaster_client_kept_bytes{client="shop",node="here"} 33`, all...)
	assert.Contains(t, text, `routemaster_client_kept_limit_bytes{client="shop",node="here"} 50`)
	servers[1].Kill(t)
	accountsPage(t, `routemaster_client_kept_bytes{client="shop",node="here"} 22`, all...)
}
