package rdb_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestWhatRedisMayLose(t *testing.T) {
	const disk = "^If Redis stops, all events, tokens and subscribers are lost: it keeps nothing on disk, set appendonly yes.$"
	const snapshot = `^If Redis crashes, what was stored since its last snapshot \(2\d{3}-.*Z\) is lost: it has no append-only file, set appendonly yes.$`
	const kernel = "^If the host of Redis crashes, what its kernel has not yet written to disk is lost, often 30 s and more: " +
		"its appendfsync is no, set it to everysec or always.$"
	const unknown = `^What Redis would lose if it crashed or was full cannot be checked: it refuses INFO\. Give its user the rights \+info `
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
		{[]string{kernel}, []string{"--appendonly", "yes", "--appendfsync", "no"}},
		{[]string{unknown}, []string{"--rename-command", "INFO", ""}},
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

// TestAUserWhoMayNotAskWhatRedisMayLose is without rights that the bus does without.
func TestAUserWhoMayNotAskWhatRedisMayLose(t *testing.T) {
	server := rdbtest.Real(t)
	for right, want := range map[string]string{"-info": "cannot be checked: it refuses INFO", "-config": "since its last snapshot"} {
		require.NoError(t, server.Raw.Do(t.Context(), "acl", "setuser", "limited", "reset", "on", ">pw", "~*", "&*", "+@all", right).Err())
		var log rdbtest.Buffer
		p := server.Open(t, log.LogTo, func(o *rdb.Options) { o.URL = strings.Replace(o.URL, "redis://", "redis://limited:pw@", 1) }).Partition("")
		risks, err := p.Risks(t.Context())
		require.NoError(t, err)
		require.Len(t, risks, 1)
		assert.Contains(t, risks[0], want)
		_, err = p.RunID(t.Context())
		require.NoError(t, err)
		assert.Empty(t, log.String(), right)
	}
}
