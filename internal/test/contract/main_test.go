package contract

import (
	"testing"

	"routemaster/internal/test/bustest"
)

func TestMain(m *testing.M) { bustest.MainWithCluster(m) }
