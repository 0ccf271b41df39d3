package test

import (
	"testing"

	"routemaster/internal/test/bustest"
)

func TestMain(m *testing.M) { bustest.Main(m) }
