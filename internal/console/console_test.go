package console_test

import (
	"testing"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// Clients of a desk that is full.
const shop, search = consoletest.Shop, consoletest.Search
