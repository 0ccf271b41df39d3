package rdb_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
)

// TestTheFirstConfirmationHoldsForWhatRanThen has a server that does not know one of two scripts at
// first, and answers the first WAIT with 0, the second, as another server might, with 1.
func TestTheFirstConfirmationHoldsForWhatRanThen(t *testing.T) {
	for _, unknown := range []int{0, 1} {
		redis, err := server.NewServer("127.0.0.1:0")
		require.NoError(t, err)
		defer redis.Close()
		var mu sync.Mutex
		scripts, waits := 0, 0
		redis.SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			mu.Lock()
			defer mu.Unlock()
			switch strings.ToLower(cmd) {
			case "evalsha":
				if scripts++; scripts == unknown+1 {
					c.WriteError("NOSCRIPT No matching script.")
					return true
				}
				c.WriteLen(1)
				c.WriteInt(1)
			case "script":
				c.WriteBulk("digest")
			case "wait":
				c.WriteInt(waits)
				waits++
			default:
				c.WriteError("ERR unknown command")
			}
			return true
		})
		client, err := rdb.Open(rdb.Options{URL: "redis://" + redis.Addr().String(), Connections: 1, MinReplicas: 1})
		require.NoError(t, err)
		defer client.Close()
		a, b := rdb.NewScript(nil, "return {1, 'a'}"), rdb.NewScript(nil, "return {1, 'b'}")
		for i, changed := range client.Partition("").ChangeAll(t.Context(), a.Call(), b.Call()) {
			assert.ErrorContains(t, changed.Err, "too few replicas", "script "+strconv.Itoa(i)+" of which "+strconv.Itoa(unknown)+" is unknown")
		}
	}
}
