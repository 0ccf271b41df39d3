package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestMigrateBackRefusesSubscribersWithOptions names subscribers that the original would serve
// wrongly.
func TestMigrateBackRefusesSubscribersWithOptions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := storetest.NewBus(t, server), t.Context()
		back := func() error {
			_, err := migrate.Run(ctx, f.Partition, migrate.Options{Back: true, Apply: true, Report: func(migrate.Unmoved) {}})
			return err
		}
		f.AddSubscriber(storetest.Alice, time.Hour, 10, "widgets")
		f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
		_, err := f.TestEvent(ctx, storetest.Bob, storetest.Start)
		require.NoError(t, err)
		patch := func(value string) {
			require.NoError(t, f.PatchSubscriber(ctx, storetest.Alice, bus.Subscription{
				Options: map[string]string{"partial": value},
			}, storetest.Start))
		}
		patch("true")
		before := rdbtest.Dump(t, f.Redis)
		require.EqualError(t, back(), "these subscribers have options or secrets, which the original knows nothing of: "+
			"alice; have them removed first")
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis))
		patch("")
		require.NoError(t, back(), "a plan alone means nothing")
	})
}
