package rdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

func TestWhatRedisMayLose(t *testing.T) {
	const disk = "^If Redis stops, all events, tokens and subscribers are lost: it keeps nothing on disk, set appendonly yes.$"
	const snapshot = `^If Redis crashes, what was stored since its last snapshot \(2\d{3}-.*Z\) is lost: it has no append-only file, set appendonly yes.$`
	const full = "^When Redis is full, it throws away events and subscriptions: its maxmemory-policy is allkeys-lru, set it to noeviction.$"
	for _, c := range []struct {
		risks     []string
		arguments []string
	}{
		{[]string{disk, full}, []string{"--maxmemory-policy", "allkeys-lru"}},
		{[]string{snapshot}, []string{"--save", "3600 1"}},
		{nil, []string{"--appendonly", "yes"}},
		{[]string{full}, []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"}},
		{[]string{snapshot}, []string{"--rename-command", "CONFIG", ""}},
	} {
		risks, err := rdbtest.Real(t, c.arguments...).Open(t).Partition("").Risks(t.Context())
		require.NoError(t, err)
		require.Len(t, risks, len(c.risks), risks)
		for i, risk := range risks {
			assert.Regexp(t, c.risks[i], risk, c.arguments)
		}
	}
	risks, err := rdbtest.Embedded(t).Open(t).Partition("").Risks(t.Context())
	assert.NoError(t, err)
	assert.Empty(t, risks, "it is for tests and rtm dev")
}
