package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestMigrateBackRefusesHistories names histories that the original would not trim.
func TestMigrateBackRefusesHistories(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		back := func() error {
			_, err := migrate.Run(ctx, f.Partition, migrate.Options{Back: true, Apply: true, Report: func(migrate.Unmoved) {}})
			return err
		}
		f.PublishEvents("widgets", 1, 1, 0)
		require.NoError(t, f.Redis.HSet(ctx, "plans", "/widgets", 1, "/gadgets", 1, "alice--1", "AAAABBBB").Err())
		require.EqualError(t, back(), "topics keep a history, which the original would never trim; "+
			"remove it first, with `rtm topic history --off gadgets`, `rtm topic history --off widgets`")
		require.NoError(t, f.Redis.HDel(ctx, "plans", "/widgets", "/gadgets").Err())
		require.NoError(t, back())
	})
}
