package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

func TestHostOwner(t *testing.T) {
	for url, want := range map[string]queue.Owner{
		"https://a.example/x":         "@a.example",
		"https://A.Example:443":       "@a.example",
		"https://a.example:8443?x=@b": "@a.example:8443",
		"http://me:x@a.example/":      "@a.example",
		"https://[::1]:443/":          "@[::1]",
		"bus:machines":                "",
		"https://":                    "",
		"pull":                        "",
		"":                            "",
	} {
		assert.Equal(t, want, queue.HostOwner(url), url)
		assert.Equal(t, want != "", queue.HostOwner(url).IsHost(), url)
	}
}

// TestFullOwnersWait has parcels put off whose address is full, or the host of it.
func TestFullOwnersWait(t *testing.T) {
	t.Parallel()
	const recheck = 40 * time.Millisecond
	full := func(o queue.Owner) queue.Full { return queue.Full{Owner: o, Recheck: recheck} }
	for name, c := range map[string]struct {
		full  []queue.Full
		taken string
	}{
		"none":         {nil, "1"},
		"its own":      {[]queue.Full{full("a:443"), full("c")}, "2"},
		"its host":     {[]queue.Full{full("@a")}, "2"},
		"both":         {[]queue.Full{full("a:443"), full("b")}, "3"},
		"but not this": {[]queue.Full{{Owner: "a:443"}, full("@a")}, "1"},
		"all":          {[]queue.Full{full("@a"), full("@b"), full("c")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				d := newDepot(t, server, 1)
				d.post("a:443", "1")
				d.post("b", "2")
				d.post("c", "3")
				taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Failing, start, c.full...)
				require.NoError(t, err)
				d.require(taken, c.taken)
				waiting := d.server.Raw.ZRangeWithScores(t.Context(), d.keys.Scheduled(bus.QueueMain), 0, -1).Val()
				for _, entry := range waiting {
					assert.Equal(t, start.Add(recheck).UnixMilli(), int64(entry.Score))
				}
				_, err = d.Schedule(t.Context(), bus.QueueMain, start.Add(recheck), 10)
				require.NoError(t, err)
				for range 3 {
					taken, err := d.Acquire(t.Context(), bus.QueueMain, bus.NewWorkerID(), bus.Failing, start)
					require.NoError(t, err)
					if taken.Task == nil {
						break
					}
				}
				assert.Zero(t, d.server.Raw.LLen(t.Context(), d.keys.Instant(bus.QueueMain)).Val(), "none is lost")
				assert.EqualValues(t, 3, d.server.Raw.SCard(t.Context(), "q:jobs:index:main").Val())
			})
		})
	}
}

// TestAHeldEntryIsNotPutOffForItsThread has a worker call again, or a call of its arrive late, when
// there is no thread left for such entries: its own has it.
func TestAHeldEntryIsNotPutOffForItsThread(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 2)
		d.post("a", "1", "2")
		full := []queue.Full{{Owner: "a", Recheck: time.Second}}
		task := d.take(ann, "1")
		again, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Proven, start, full...)
		require.NoError(t, err)
		d.require(again, "1")
		others, err := d.Acquire(t.Context(), bus.QueueMain, ben, bus.Failing, start, full...)
		require.NoError(t, err)
		d.require(others, "")
		owned, err := d.Complete(t.Context(), task, queue.Done, start)
		require.NoError(t, err)
		assert.True(t, owned)
	})
}

// TestOnlyOwnEntriesMakeARecheckLonger adds very many other entries that come up soon.
func TestOnlyOwnEntriesMakeARecheckLonger(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const recheck, posted, others = 40, 100, 1000
		d, ctx := newDepot(t, server, posted), t.Context()
		scheduled := d.keys.Scheduled(bus.QueueMain)
		for n := range others {
			require.NoError(t, server.Raw.Do(ctx, "ZADD", scheduled, start.UnixMilli()+1, n).Err())
		}
		for n := range posted {
			d.post("a", fmt.Sprint(n))
		}
		full := queue.Full{Owner: "a", Recheck: recheck * time.Millisecond}
		taken, err := d.Acquire(ctx, bus.QueueMain, ann, bus.Failing, start, full)
		require.NoError(t, err)
		require.Nil(t, taken.Task)
		waiting := server.Raw.ZRangeWithScores(ctx, scheduled, others, -1).Val()
		require.Len(t, waiting, posted)
		for place, entry := range waiting {
			assert.EqualValues(t, max(recheck, place), int64(entry.Score)-start.UnixMilli(), "place %d", place)
		}
	})
}
