package rdb_test

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// Whatever leads to the library's client makes each package that imports rdb compile all methods of
// that once more.
func TestNoTypeLeadsToTheLibrarysClient(t *testing.T) {
	assert.Contains(t, reached[*redis.PubSub](), reflect.TypeFor[redis.Client](), "what is looked for")
	for name, types := range map[string]map[reflect.Type]bool{
		"Client": reached[*rdb.Client](), "Partition": reached[*rdb.Partition](),
		"Listener": reached[*rdb.Listener](), "Waiter": reached[*rdb.Waiter](),
		"Options": reached[*rdb.Options](), "Commands": reached[rdb.Commands](),
	} {
		assert.NotContains(t, types, reflect.TypeFor[redis.Client](), name)
	}
}

// TestNobodyCompilesTheLibrarysClient looks at the compiled code of packages that import this one:
// an inlined function may lead to the client, too.
func TestNobodyCompilesTheLibrarysClient(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("it would compile without the detector")
	}
	const packages = "routemaster/internal/"
	compiled := func(of string) string {
		archive, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", packages+of).Output()
		require.NoError(t, err)
		symbols, err := exec.Command("go", "tool", "nm", strings.TrimSpace(string(archive))).Output()
		require.NoError(t, err)
		return string(symbols)
	}
	const client = "redis/go-redis/v9.baseClient"
	assert.Contains(t, compiled("rdb"), client, "what is looked for")
	for _, of := range []string{"app", "test/bustest"} { // which use all there is, and all test helpers
		assert.NotContains(t, compiled(of), client, of)
	}
}

// reached are the types that T leads to by fields, elements, parameters, results and methods.
func reached[T any]() map[reflect.Type]bool {
	types := map[reflect.Type]bool{}
	var reach func(reflect.Type)
	reach = func(t reflect.Type) {
		if types[t] {
			return
		}
		types[t] = true
		switch t.Kind() {
		case reflect.Map:
			reach(t.Key())
			reach(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			reach(t.Elem())
		case reflect.Struct:
			for field := range t.Fields() {
				reach(field.Type)
			}
		case reflect.Func:
			for in := range t.Ins() {
				reach(in)
			}
			for out := range t.Outs() {
				reach(out)
			}
		}
		for method := range t.Methods() {
			reach(method.Type)
		}
	}
	reach(reflect.TypeFor[T]())
	return types
}
