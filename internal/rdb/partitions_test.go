package rdb_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// TestNamesNeverMove pins where topics and subscribers are: stored data is found only by that.
func TestNamesNeverMove(t *testing.T) {
	client := rdbtest.Embedded(t).Open(t)
	all := client.Partitions("prod:", 12)
	assert.Equal(t, "prod:{p07.a}:", all[7].Namespace())
	for name, want := range map[string]int{"": 5, "widgets": 6, "orders": 4, "a": 4, "b": 1, "demo--aaaaaaaaaaaa": 4} {
		assert.Same(t, all[want], all.Home(bus.TopicName(name)), name)
		assert.Same(t, all[want], all.Of(bus.Token(name)), name)
	}
	one := rdb.Partitions{client.Partition("")}
	assert.Same(t, one[0], one.Home("widgets"))
	assert.False(t, one[0].IsOneOfSeveral())
	assert.True(t, all[0].IsOneOfSeveral())
}

func TestNamesAreSpreadEvenly(t *testing.T) {
	all := rdbtest.Embedded(t).Open(t).Partitions("", 12)
	const names = 12_000
	found := map[*rdb.Partition]int{}
	for i := range names {
		found[all.Home(bus.TopicName(fmt.Sprintf("topic_%d", i)))]++
	}
	for _, p := range all {
		assert.InDelta(t, names/12, found[p], names/12/5, p.Namespace())
	}
}

// TestPartitionsOnOneRedis are beside each other, each held until it is released.
func TestPartitionsOnOneRedis(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		all := server.Open(t).Partitions("", 3)
		for _, p := range all {
			err := write(ctx, p)
			assert.ErrorIs(t, err, bus.ErrUnavailable)
			assert.ErrorContains(t, err, "CLOSED")
			require.NoError(t, p.Release(ctx))
			require.NoError(t, write(ctx, p))
			assert.Equal(t, 1, count(t, p))
		}
		assert.Equal(t, "1/3", all[1].Get(ctx, all[1].Namespace()+"partition").Val())
		for _, p := range all {
			assert.Zero(t, p.Exists(ctx, p.Namespace()).Val(), "the key that scripts declare never exists")
		}
	})
}

// TestAHeldPartitionIsLoggedOnce refuses scripts and answers reads in turn, as a worker sends both.
func TestAHeldPartitionIsLoggedOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		var log rdbtest.Buffer
		p := server.Open(t, log.LogTo).Partitions("", 1)[0]
		require.NoError(t, p.Release(ctx))
		require.NoError(t, write(ctx, p))
		for range 2 {
			_, err := p.Hold(ctx, 0)
			require.NoError(t, err)
			for range 3 {
				assert.ErrorIs(t, write(ctx, p), bus.ErrUnavailable)
				assert.Equal(t, 1, count(t, p), "reads are answered")
				require.NoError(t, server.Raw.ScriptFlush(ctx).Err()) // then EVALSHA is answered before the guard looks
			}
			_, err = p.Hold(ctx, 0) // it sends a script without the guard
			require.NoError(t, err)
			require.NoError(t, p.Release(ctx))
			assert.Equal(t, 1, count(t, p))
			assert.Regexp(t, `^[^\n]*level=ERROR msg="partition held or moving, retrying" error="CLOSED [^\n]*\n$`, log.String())
			require.NoError(t, write(ctx, p))
			require.NoError(t, write(ctx, p))
			assert.Regexp(t, `^[^\n]*ERROR[^\n]*\n[^\n]*level=INFO msg="partition open again"\n$`, log.String())
			log.Reset()
			require.NoError(t, p.Set(ctx, p.Namespace()+"count", 1, 0).Err())
		}
	})
}

// TestAPartitionThatComesBackWithoutKeys answers again, and is held from then on.
func TestAPartitionThatComesBackWithoutKeys(t *testing.T) {
	var log rdbtest.Buffer
	server := rdbtest.Real(t)
	p := server.Open(t, log.LogTo).Partitions("", 1)[0]
	require.NoError(t, p.Release(t.Context()))
	require.NoError(t, write(t.Context(), p))
	server.Kill(t)
	require.ErrorIs(t, write(t.Context(), p), bus.ErrUnavailable)
	server.Restart(t)
	require.Eventually(t, func() bool {
		return assert.ErrorIs(t, write(t.Context(), p), bus.ErrUnavailable) && p.Exists(t.Context(), "x").Err() == nil &&
			strings.Contains(log.String(), "partition held")
	}, time.Minute, time.Millisecond)
	assert.Regexp(t, `^[^\n]*redis unavailable[^\n]*\n[^\n]*redis available again\"\n[^\n]*partition held or moving[^\n]*\n$`, log.String())
}

// TestScriptsAreSentInOnePlace reads all of our code: a script that is sent from elsewhere may be
// sent twice, or to half of a partition.
func TestScriptsAreSentInOnePlace(t *testing.T) {
	sent := map[string]int{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text := strings.ToLower(strings.Trim(n.Value, "`\"")); text == "evalsha" || text == "eval" {
					sent[filepath.ToSlash(path)]++
				}
			case *ast.SelectorExpr:
				if strings.HasPrefix(n.Sel.Name, "Eval") && strings.Trim(n.Sel.Name, "Eval") == "" || n.Sel.Name == "EvalSha" || n.Sel.Name == "EvalRO" || n.Sel.Name == "EvalShaRO" {
					sent[filepath.ToSlash(path)]++
				}
			}
			return true
		})
		return nil
	}))
	assert.Equal(t, 1, sent["../rdb/script.go"])
	assert.Equal(t, 1, sent["../rdb/confirm.go"])
	delete(sent, "../rdb/script.go")
	delete(sent, "../rdb/confirm.go")
	delete(sent, "../rdb/connectionstate.go") // it reads the replies
	assert.Empty(t, sent)
}
