package store_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// fixture is a bus, with the helpers of this package's tests.
type fixture struct{ *storetest.Bus }

func newFixture(t testing.TB, server *rdbtest.Server, adjust ...func(*store.Options)) *fixture {
	return &fixture{storetest.NewBus(t, server, adjust...)}
}

func newFixtureInFlight(t testing.TB, server *rdbtest.Server, max int) *fixture {
	return &fixture{storetest.NewBusInFlight(t, server, max)}
}

func newFixtureOn(t testing.TB, server *rdbtest.Server, partition *rdb.Partition) *fixture {
	return &fixture{storetest.NewBusOn(t, server, partition)}
}

func keysOf(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

// sinceStart is the real time, in ms after [storetest.Start]. Checks compare with the real time.
func sinceStart() int { return int(time.Since(storetest.Start).Milliseconds()) }
