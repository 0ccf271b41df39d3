package migrate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// TestMigrateBack moves this program's data to the original.
func TestMigrateBack(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := storetest.NewBus(t, server)
		l := &left{original{f}, t.Context()}
		f.AddSubscriber(storetest.Alice, 500*time.Millisecond, 2, "widgets")
		f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
		f.PublishEvents("widgets", 1, 5, 0)
		running := f.Take("w1", 1)
		require.Nil(t, f.Take("w2", 1), "the second waits for its turn")
		l.Redis.HSet(l.ctx, "workers", "w1", time.Now().UnixMilli())
		before := rdbtest.Dump(t, l.Redis)
		would, reports := l.migrate(migrate.Options{Back: true})
		assert.Equal(t, before, rdbtest.Dump(t, l.Redis))
		assert.Equal(t, migrate.Result{Batches: 3, Events: 8, Later: 1}, would)
		done, again := l.migrate(migrate.Options{Back: true, Apply: true})
		assert.Equal(t, would, done)
		assert.Equal(t, reports, again)
		assert.Equal(t, []string{"batch:" + string(running.Delivery.Batch) + ": is being delivered: run this again when it has been [later]"}, reports)
		assert.Empty(t, l.Redis.Keys(l.ctx, "batches:current:*").Val())
		f.Complete(running, storetest.Done)
		done, reports = l.migrate(migrate.Options{Back: true, Apply: true})
		assert.True(t, done.NothingLeft(), done)
		assert.Empty(t, reports)
		assert.Empty(t, l.Redis.Keys(l.ctx, "batch:*").Val())
		assert.Empty(t, l.Redis.Keys(l.ctx, "jobs:lane:batch:*").Val())

		// The original delivers it all.
		got := map[string]int{}
		for l.Redis.LLen(l.ctx, "jobs:instant:main").Val() > 0 {
			bid := l.take("ruby", time.Now())
			batch := l.Redis.LRange(l.ctx, "batches:"+bid, 0, -1).Val()
			for _, event := range batch[3:] {
				got[fmt.Sprintf("%s %d", batch[0], storetest.Number(t, wire.PackedEvent(event)))]++
			}
			l.finish("ruby", bid)
		}
		assert.Equal(t, map[string]int{"alice--1 3": 1, "alice--1 4": 1, "alice--1 5": 1,
			"bob--2 1": 1, "bob--2 2": 1, "bob--2 3": 1, "bob--2 4": 1, "bob--2 5": 1}, got)
		assert.Zero(t, l.Redis.SCard(l.ctx, "jobs:index:main").Val())
		assert.Zero(t, l.Redis.ZCard(l.ctx, "batches:index").Val())
	})
}

// TestMigrateBackAndForth ends where it began, but for the current batches.
func TestMigrateBackAndForth(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		l.apply()
		there := rdbtest.Dump(t, l.Redis)
		done, reports := l.migrate(migrate.Options{Back: true, Apply: true})
		assert.Equal(t, 4, done.Batches)
		assert.Empty(t, reports)
		assert.NotEqual(t, there, rdbtest.Dump(t, l.Redis))
		l.apply()
		assert.Equal(t, there, rdbtest.Dump(t, l.Redis))
	})
}

// TestMigrateBackRefusesWhatTheOriginalCannotRead uses events that would crash its worker.
func TestMigrateBackRefusesWhatTheOriginalCannotRead(t *testing.T) {
	event := func(url, data string) string {
		return fmt.Sprintf(`{"type":"update","url":"https://x.example/%s","data":%s}`, url, data)
	}
	for reason, event := range map[string]string{
		"its URL has a query":                 event("1?a=b", `null`),
		"its data is no object":               event("1", `[1]`),
		"its data has more than the 64 bytes": event("1", `{"a":"`+strings.Repeat("a", 100)+`"}`),
		"":                                    event("1", `{"a":["?"]}`),
	} {
		t.Run(reason, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				f := storetest.NewBus(t, server)
				l := &left{original{f}, t.Context()}
				f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
				packed := wiretest.Pack(t, "widgets", event)
				require.NoError(t, f.Publish(l.ctx, store.Publication{
					Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{packed}, ReceivedAt: storetest.Start.UnixMilli(),
				}))
				done, reports := l.migrate(migrate.Options{Back: true, Apply: true})
				if reason == "" {
					assert.Equal(t, migrate.Result{Batches: 1, Events: 1}, done)
					return
				}
				assert.Equal(t, migrate.Result{Refused: 1}, done)
				assert.Contains(t, reports[0], "its element 3, counted from 0, cannot be read: "+reason)
				done, _ = l.migrate(migrate.Options{Back: true, Apply: true, Unreadable: true})
				assert.Equal(t, migrate.Result{Batches: 1, Events: 1}, done)
			})
		})
	}
}
