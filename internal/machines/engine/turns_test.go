package engine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
)

// calls counts how often Redis runs some commands during a step, and the bytes that it sends.
func calls(t *testing.T, server *rdbtest.Server, step func(), commands ...string) (counts map[string]int, sent int) {
	t.Helper()
	ctx := t.Context()
	bytesSent := func() int {
		found := regexp.MustCompile(`total_net_output_bytes:(\d+)`).FindStringSubmatch(server.Raw.Info(ctx, "stats").Val())
		require.Len(t, found, 2)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	require.NoError(t, server.Raw.ConfigResetStat(ctx).Err())
	before := bytesSent()
	step()
	sent = bytesSent() - before
	counts = map[string]int{}
	stats := server.Raw.Info(ctx, "commandstats").Val()
	for _, command := range commands {
		found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
		if found != nil {
			counts[command], _ = strconv.Atoi(found[1])
		}
	}
	return counts, sent
}

// mergeAtOnce makes many changes of one label at once, in several processes if there are several
// stores. Each adds a key of its own; it returns the labels as they were after each.
func mergeAtOnce(t *testing.T, changes int, stores ...*engine.Store) []machines.Label {
	t.Helper()
	labels := make([]machines.Label, changes)
	var all sync.WaitGroup
	for i := range labels {
		all.Go(func() {
			label, err := stores[i%len(stores)].Merge(t.Context(), "m", "ann", machines.Object{fmt.Sprint("k", i): i}, false)
			assert.NoError(t, err)
			labels[i] = label
		})
	}
	all.Wait()
	return labels
}

// requireEachOnce requires that each change was made once, in some order, and was answered with the
// label as it was after that.
func requireEachOnce(t *testing.T, f *machinestest.Fixture, labels []machines.Label) {
	t.Helper()
	sizes := map[int]bool{}
	for i, label := range labels {
		var metadata map[string]int
		require.NoError(t, json.Unmarshal(label.Metadata, &metadata))
		assert.Equal(t, i, metadata[fmt.Sprint("k", i)])
		assert.Contains(t, metadata, fmt.Sprint("k", i))
		sizes[len(metadata)] = true
	}
	assert.Len(t, sizes, len(labels), "each was made behind another")
	var metadata map[string]int
	require.NoError(t, json.Unmarshal(f.Show("m", "ann").Metadata, &metadata))
	assert.Len(t, metadata, len(labels))
}

// TestManyChangesOfALabelAtOnce counts the scripts that they take together: a read and a change for
// each step of up to 64 of them.
func TestManyChangesOfALabelAtOnce(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	f.Apply(gates)
	f.Create("m", "ann", `{}`)
	merge(f, "ann", `{}`) // so that the scripts are loaded
	const changes = 600
	var labels []machines.Label
	counts, sent := calls(t, server, func() { labels = mergeAtOnce(t, changes, f.Store) }, "evalsha", "set")
	t.Logf("%d changes: %v, %d bytes read", changes, counts, sent)
	requireEachOnce(t, f, labels)
	assert.Less(t, counts["set"], changes/4, "they are made together")
	assert.LessOrEqual(t, counts["evalsha"], 2*counts["set"])
	f.RequireSound(t)
}

// TestManyChangesOfALabelInSeveralProcesses has three processes get ahead of one another.
func TestManyChangesOfALabelInSeveralProcesses(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		requireEachOnce(t, f, mergeAtOnce(t, 150, f.Store, engine.NewStore(f.Partitions[0]), engine.NewStore(f.Partitions[0])))
	})
}

// TestAChangeThatIsRefusedLeavesOutItselfOnly makes changes in one step; some are too long, and a
// trigger waits for one.
func TestAChangeThatIsRefusedLeavesOutItselfOnly(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				patch, refused := machines.Object{fmt.Sprint("k", i): i}, i%3 == 0
				if refused {
					patch["long"] = strings.Repeat("x", machines.MaxMetadata)
				}
				if i == 31 {
					patch["go"] = true
				}
				_, err := f.Merge(t.Context(), "m", "ann", patch, false)
				if refused {
					assert.ErrorContains(t, err, "are allowed")
				} else {
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		label := f.Show("m", "ann")
		metadata, err := machines.ParseObject(label.Metadata)
		require.NoError(t, err)
		assert.Len(t, metadata, 41)
		assert.True(t, label.Pending)
		f.Work()
		assert.Equal(t, machines.StateName("second"), f.Show("m", "ann").State)
	})
}

// TestManyEventsAtOnceMakeALabelOnce makes changes that may create their label.
func TestManyEventsAtOnceMakeALabelOnce(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		var all sync.WaitGroup
		made := make([]bool, 50)
		for i := range made {
			all.Go(func() {
				change := machines.Change{Patch: machines.Object{fmt.Sprint("k", i): i}, Create: i%2 == 0}
				label, err := f.Store.Change(t.Context(), "m", "ann", change, f.Now)
				if change.Create {
					assert.NoError(t, err)
				} else if err != nil {
					assert.ErrorIs(t, err, machines.ErrUnknownLabel, "it came before one that makes it")
				}
				made[i] = err == nil && label.Version == 0
			})
		}
		all.Wait()
		count := 0
		for _, one := range made {
			if one {
				count++
			}
		}
		assert.Equal(t, 1, count)
	})
}

// TestManyRequestsWaitForALabelTogether counts the commands of requests that wait while a worker is
// at its task: they share checks for rest, which do not read the metadata.
func TestManyRequestsWaitForALabelTogether(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	f.Apply(gates)
	f.Create("m", "ann", `{"long":"`+strings.Repeat("x", 60_000)+`"}`)
	merge(f, "ann", `{"go":true}`)
	const waiters, wait = 50, time.Second
	counts, sent := calls(t, server, func() {
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				label, _, err := f.Rest(t.Context(), "m", "ann", wait)
				assert.NoError(t, err)
				assert.False(t, label.Resting)
			})
		}
		all.Wait()
	}, "evalsha", "get")
	t.Logf("%d requests that wait for %v: %v, %d bytes read", waiters, wait, counts, sent)
	assert.Equal(t, waiters, counts["get"], "each reads the metadata once, for its response")
	assert.Less(t, counts["evalsha"]-waiters, 100, "they share their looks")

	rested := make(chan machines.StateName, waiters)
	for range waiters {
		go func() {
			label, _, err := f.Rest(t.Context(), "m", "ann", time.Minute)
			assert.NoError(t, err)
			rested <- label.State
		}()
	}
	f.Work()
	for range waiters {
		assert.Equal(t, machines.StateName("second"), <-rested)
	}
}
