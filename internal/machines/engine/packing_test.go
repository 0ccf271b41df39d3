package engine_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// TestEntriesInLua compares the bytes of an entry packed by the scripts with the bytes packed by
// Go.
func TestEntriesInLua(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, length := range []int{1, 31, 32, 255, 256, 512} {
		name := strings.Repeat("é", length)[:length]
		quoted := "'m', '" + name + "'"
		want["pack_pair('label', "+quoted+")"] = wire.PackJob(bus.Job{Name: bus.JobLabel, Args: []string{"m", name}})
		unpacked := "(function() local name, arg = KINDS.unpack_job(pack_pair('label', " + quoted + ")) return name .. ' ' .. table.concat(arg, ' ') end)()"
		want[unpacked] = "label m " + name
	}
	for _, other := range []string{
		"''", "'x'", "pack_job('batch', 'x')", "pack_pair('label', 'a', 'b') .. 'x'", "'\\146\\165label\\146\\218'",
		"string.sub(pack_pair('label', 'm', string.rep('x', 300)), 1, -2)",
	} {
		want["tostring(KINDS.unpack_job("+other+"))"] = "nil"
	}
	entries, err := os.ReadFile("lua/lib/entries.lua")
	require.NoError(t, err)
	library := strings.Join(queue.Library, "") + string(entries)
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for expression, want := range want {
			got, err := server.Raw.Eval(t.Context(), library+"\nreturn "+expression, nil, "ns:").Text()
			require.NoError(t, err, expression)
			assert.Equal(t, want, got, expression)
		}
	})
}
