package engine

import (
	"testing"

	"routemaster/internal/rdb/rdbtest"
)

func TestScriptsNameTheirArgumentsAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireArguments(t, lua("label_create"), createArgs.list)
	rdbtest.RequireArguments(t, lua("label_patch"), patchArgs.list)
	rdbtest.RequireArguments(t, lua("definitions_put"), definitionsArgs.list)
}
