package console_test

import (
	"testing"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.MainWithCluster(m) }

// Clients of a desk that is full.
const shop, search = consoletest.Shop, consoletest.Search
