package rdb_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// answering opens a server with given replies by lower-case command, one at a time, for tests of
// changes that a replica confirms.
func answering(t *testing.T, answer map[string]func(*server.Peer)) *rdb.Client {
	t.Helper()
	redis, err := server.NewServer("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	var mu sync.Mutex
	redis.SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		if f, ok := answer[strings.ToLower(cmd)]; ok {
			f(c)
		} else {
			c.WriteError("ERR unknown command")
		}
		return true
	})
	client, err := rdb.Open(rdb.Options{URL: "redis://" + redis.Addr().String(), Connections: 1, MinReplicas: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// writeChanged replies like a script that made its change.
func writeChanged(c *server.Peer) {
	c.WriteLen(1)
	c.WriteInt(1)
}

// TestTheFirstConfirmationHoldsForWhatRanThen has a server that does not know one of two scripts at
// first, and answers the first WAIT with 0, the second, as another server might, with 1.
func TestTheFirstConfirmationHoldsForWhatRanThen(t *testing.T) {
	for _, unknown := range []int{0, 1} {
		scripts, waits, isWritten := 0, 0, false
		client := answering(t, map[string]func(*server.Peer){
			"evalsha": func(c *server.Peer) {
				if scripts++; scripts == unknown+1 {
					c.WriteError("NOSCRIPT No matching script.")
					return
				}
				writeChanged(c)
			},
			"script": func(c *server.Peer) { c.WriteBulk("digest") },
			"eval":   func(c *server.Peer) { isWritten = true; c.WriteInt(1) },
			"wait": func(c *server.Peer) {
				if !isWritten {
					c.WriteError("ERR newer engines do not wait for what their connection has not written")
					return
				}
				isWritten = false
				c.WriteInt(waits)
				waits++
			},
		})
		a, b := rdb.NewScript(nil, "return {1, 'a'}"), rdb.NewScript(nil, "return {1, 'b'}")
		for i, changed := range client.Partition("").ChangeAll(t.Context(), a.Call(), b.Call()) {
			assert.ErrorContains(t, changed.Err, "too few replicas", "script "+strconv.Itoa(i)+" of which "+strconv.Itoa(unknown)+" is unknown")
		}
	}
}

// TestAConfirmationThatIsRefusedIsNone has a server that has become a replica of another.
func TestAConfirmationThatIsRefusedIsNone(t *testing.T) {
	one := func(c *server.Peer) { c.WriteInt(1) }
	refuse := func(why string) func(*server.Peer) { return func(c *server.Peer) { c.WriteError(why) } }
	for name, answer := range map[string]map[string]func(*server.Peer){
		"READONLY": {"eval": refuse("READONLY You can't write against a read only replica."), "wait": one},
		"WAIT":     {"eval": one, "wait": refuse("ERR WAIT cannot be used with replica instances.")},
	} {
		answer["evalsha"] = writeChanged
		err := answering(t, answer).Partition("").Change(t.Context(), done).Err
		assert.ErrorIs(t, err, bus.ErrUnavailable, name)
		assert.ErrorContains(t, err, name)
	}
}

// TestScriptsThatAreRefused alone: in the words of a Redis that lacks the command, or a proxy.
func TestScriptsThatAreRefused(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := server.Open(t).Partition("")
		assert.NoError(t, p.RequireScripts(t.Context()))
		assert.Empty(t, p.RefusesScripts(t.Context()))
	})
	p := rdbtest.Real(t, "--rename-command", "evalsha", "").Open(t).Partition("")
	assert.Regexp(t, "^ERR unknown command .evalsha.$", p.RefusesScripts(t.Context()))
	assert.ErrorIs(t, p.RequireScripts(t.Context()), bus.ErrUnavailable)
	assert.NoError(t, p.Ping(t.Context()).Err())
}
