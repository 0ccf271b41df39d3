package engine

import (
	"regexp"
	"strings"
	"testing"

	"routemaster/internal/rdb/rdbtest"
)

func TestScriptsNameTheirArgumentsAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireArguments(t, lua("label_create"), createArgs.list)
	rdbtest.RequireArguments(t, lua("label_patch"), patchArgs.list)
	rdbtest.RequireArguments(t, lua("definitions_put"), definitionsArgs.list)
}

func TestScriptsNameAMoveAsGoDoes(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`local ([\w, ]+) = unpack\(result, 4, 11\)`).FindStringSubmatch(lua("lib/kind"))[1]
	rdbtest.RequireNames[moveResult](t, strings.Split(names, ", "))
}
