package engine_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines/engine"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// TestKeysInLua holds the scripts' keys, and their bytes of an entry, to those in Go.
func TestKeysInLua(t *testing.T) {
	t.Parallel()
	k := engine.Keys{Namespace: "ns:"}
	want := map[string]string{
		"definitions_key()":      k.Definitions(),
		"walks_key()":            k.Walks(),
		"label_key('m', 'l')":    k.Label("m", "l"),
		"metadata_key('m', 'l')": k.Metadata("m", "l"),
		"history_key('m', 'l')":  k.History("m", "l"),
		"names_key('m')":         k.Names("m"),
		"labels_key('m', 's')":   k.Labels("m", "s"),
		"errored_key('m')":       k.Errored("m"),
		"outbox_key('m')":        k.Outbox("m"),
		"published_key('m')":     k.Published("m"),
		"standings_key('m')":     k.Standings("m"),
	}
	read := func(name string) string {
		text, err := os.ReadFile("lua/lib/" + name)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, strings.Count(read("keys.lua"), "function"), len(want), "a key is not compared")
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
	library := strings.Join(queue.Library, "") + read("keys.lua") + read("entries.lua")
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for expression, want := range want {
			got, err := server.Raw.Eval(t.Context(), library+"\nreturn "+expression, nil, "ns:").Text()
			require.NoError(t, err, expression)
			assert.Equal(t, want, got, expression)
		}
	})
}
