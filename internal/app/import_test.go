package app_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// room is a package of the floor plan, together with the packages below it, which may import one
// another and whatever the room may. Its name is its path without "internal/".
type room struct {
	name string
	// uses are the rooms that it may import. They come before it in the plan.
	uses string
}

// plan is the floor plan, from the bottom up. Imports go strictly downward, and rooms that do not
// name each other are independent: so ingest and delivery, for example.
var plan = []room{
	{"bus", ""},
	{"clock", ""},
	{"overview", "bus"},
	{"format", ""},
	{"machines/condition", "bus"},
	{"machines", "bus machines/condition"},
	{"machines/definition", "bus machines/condition machines"},
	{"signature", "bus"},
	{"wire", "bus"},
	{"freeport", ""},
	{"rdb", "bus freeport"}, // rdbtest needs ports
	{"layout", "bus machines rdb"},
	{"queue", "bus wire rdb layout"},
	{"account", "bus rdb layout queue"},
	{"store", "bus signature wire rdb layout queue"},
	{"migrate", "bus wire rdb layout store"}, // off the hot path: only rtm uses it
	{"inspect", "bus overview wire rdb layout store"},
	{"outbound", "bus"},
	{"telemetry", "bus"},
	{"jobs", "bus wire rdb layout queue account outbound telemetry"},
	{"overview/samples", "bus clock overview machines rdb layout account store inspect telemetry jobs"},
	{"ingest", "bus wire rdb store telemetry"},
	{"machines/engine", "bus machines/condition machines machines/definition wire rdb layout queue account store outbound telemetry ingest"},
	{"doctor", "bus machines wire rdb layout account store jobs machines/engine"},                 // likewise
	{"store/storetest", "bus wire rdb layout queue store inspect doctor"},                         // its tests require doctor's findings
	{"buscopy", "bus format wire rdb layout queue store overview/samples machines/engine doctor"}, // likewise
	{"delivery", "bus signature wire queue store outbound telemetry"},
	{"machines/machinestest", "bus machines machines/definition rdb layout queue outbound telemetry machines/engine doctor"},
	{"activity", "rdb layout"},
	{"maintenance", "bus overview wire rdb layout queue account store inspect telemetry overview/samples"},
	{"worker", "bus rdb queue telemetry"},
	{"console/static", ""},
	{"web", "bus overview machines/condition machines machines/definition signature wire queue account store inspect outbound telemetry jobs ingest machines/engine activity"},
	{"web/webtest", "bus overview rdb store outbound telemetry jobs overview/samples ingest machines/engine store/storetest web"},
	{"client", ""}, // other programs import it
	{"console", "bus overview format rdb layout activity console/static web client"},
	{"console/consoletest", "bus overview signature wire rdb layout outbound store/storetest machines/machinestest web web/webtest console"},
	{"selfsigned", ""},
	{"terminal", ""},
	{"top", "bus overview format client terminal"},
	{"app", "bus clock overview machines machines/definition signature rdb queue account store outbound telemetry jobs overview/samples ingest machines/engine delivery maintenance worker web console"},
	{"test", "bus rdb store store/storetest app"},
	{"examples/receivers", "client"},
	{"examples/services", ""}, // to be read beside the Python and Node ones: the standard library only
	{"cmd/web", "app"},
	{"cmd/worker", "app"},
	{"cmd/rtm", "bus format machines/condition machines machines/definition wire rdb store migrate inspect telemetry jobs doctor buscopy client selfsigned terminal top app"},
}

// libraries lists, for each library, which of our packages may import it, and the packages below
// them.
var libraries = map[string]string{
	"github.com/DataDog/datadog-go/":       "telemetry/vendors",
	"github.com/abbot/go-http-auth":        "web/rest",
	"github.com/alicebob/miniredis/":       "cmd/rtm", // for rtm dev
	"github.com/cenkalti/backoff/":         "client",
	"github.com/charmbracelet/x/ansi":      "top",
	"charm.land/":                          "top",
	"github.com/cli/browser":               "cmd/rtm",
	"github.com/getsentry/sentry-go":       "telemetry/vendors",
	"github.com/go-chi/chi/":               "web",
	"github.com/go-json-experiment/json":   "client wire web cmd/rtm",
	"github.com/google/uuid":               "jobs",
	"github.com/honeybadger-io/":           "telemetry/vendors",
	"github.com/joho/godotenv":             "app",
	"github.com/netresearch/go-cron":       "jobs",
	"github.com/klauspost/compress/":       "web/rest",
	"github.com/newrelic/":                 "telemetry/vendors",
	"github.com/prometheus/client_golang/": "telemetry",
	"github.com/redis/go-redis/":           "rdb",
	"github.com/schollz/progressbar/":      "cmd/rtm",
	"github.com/spf13/":                    "cmd/rtm",
	"github.com/vmihailenco/msgpack/":      "wire",
	"go.opentelemetry.io/":                 "telemetry",
	"go.yaml.in/yaml/":                     "machines/definition cmd/rtm",
	"golang.org/x/net/":                    "outbound",
	"golang.org/x/sync/":                   "store inspect buscopy machines/engine cmd/rtm",
	"golang.org/x/sys/":                    "outbound cmd/rtm",
	"golang.org/x/term":                    "terminal",
	"golang.org/x/time/":                   "web/rest",
}

// forTests are imports allowed only in tests and in packages that help them.
var forTests = []string{
	"github.com/stretchr/testify/", "go.uber.org/goleak", "github.com/alicebob/miniredis/", "github.com/getkin/kin-openapi/",
}

const module = "routemaster/"

// goPackage is the go command's description of a package.
type goPackage struct {
	ImportPath                                         string
	Dir                                                string
	Imports, TestImports, XTestImports                 []string
	GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

// name is the package's path as the plan has it, or "" if it is not ours.
func (p goPackage) name() string { return nameOf(p.ImportPath) }

func nameOf(path string) string {
	ours, found := strings.CutPrefix(path, module)
	if !found {
		return ""
	}
	return strings.TrimPrefix(ours, "internal/")
}

// helpsTests reports whether a package is for tests: its name ends like the standard library's,
// such as httptest.
func helpsTests(name string) bool {
	return strings.HasSuffix(name, "test") && strings.Contains(name, "/")
}

// below reports whether a package is one that is named, or in a folder below it.
func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }

// roomOf is the room that a package is in: the innermost one.
func roomOf(name string) (in *room) {
	for i := range plan {
		if below(name, plan[i].name) && (in == nil || len(plan[i].name) > len(in.name)) {
			in = &plan[i]
		}
	}
	return in
}

// packages lists all packages of the repository: the module's, and the client's, which has its own.
func packages(t *testing.T) (all []goPackage) {
	t.Helper()
	const fields = "ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles"
	output, err := exec.CommandContext(t.Context(), "go", "list", "-json="+fields, module+"...").Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

func TestThePlanGoesUpward(t *testing.T) {
	var before []string
	for _, r := range plan {
		assert.Subset(t, before, strings.Fields(r.uses), r.name)
		before = append(before, r.name)
	}
}

func TestImportsFollowThePlan(t *testing.T) {
	built := map[string]bool{}
	for _, p := range packages(t) {
		r := roomOf(p.name())
		if r == nil {
			t.Errorf("%s is not on the floor plan: add a room for it, or put it below one", p.name())
			continue
		}
		built[r.name] = true
		for _, path := range p.Imports {
			checkImport(t, r, p.name(), path)
		}
	}
	for _, r := range plan {
		if !built[r.name] {
			t.Errorf("%s is on the floor plan, and is not there", r.name)
		}
	}
}

// TestTheClientDoesWithoutTheBus looks at the client's tests too: its module could not be tidied or
// tested by itself if one of them imported the bus.
func TestTheClientDoesWithoutTheBus(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		if !below(p.name(), "client") {
			continue
		}
		looked++
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if imported := nameOf(path); imported != "" && !below(imported, "client") {
				t.Errorf("%s must not import %s: move the test to internal/test/client", p.name(), path)
			}
		}
	}
	assert.Greater(t, looked, 5)
}

// checkImport fails the test unless a package may import a path.
func checkImport(t *testing.T, r *room, name, path string) {
	t.Helper()
	if imported := nameOf(path); imported != "" {
		if to := roomOf(imported); to != r && (to == nil || !slices.Contains(strings.Fields(r.uses), to.name)) {
			t.Errorf("%s must not import %s: the plan says %q", name, imported, r.uses)
		}
		if helpsTests(imported) && !helpsTests(name) {
			t.Errorf("%s must not import %s, which is for tests", name, imported)
		}
		return
	}
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") { // the standard library
		return
	}
	if helpsTests(name) && hasPrefixOf(path, forTests) {
		return
	}
	for prefix, importers := range libraries {
		if strings.HasPrefix(path, prefix) {
			may := func(parent string) bool { return below(name, parent) }
			if !slices.ContainsFunc(strings.Fields(importers), may) {
				t.Errorf("%s must not import %s: only %s may", name, path, importers)
			}
			return
		}
	}
	t.Errorf("%s imports %s: say in libraries who may", name, path)
}

func hasPrefixOf(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}
