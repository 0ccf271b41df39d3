package jobs

import (
	"testing"

	"routemaster/internal/rdb/rdbtest"
)

func TestScriptsNameTheirArgumentsAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireArguments(t, lua("job_report"), reportArgs.list)
	rdbtest.RequireArguments(t, lua("type_put"), typeArgs.list)
}
