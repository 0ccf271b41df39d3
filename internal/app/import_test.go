package app_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "routemaster/"

// below lists, for every package, the packages of ours that it may import: the floor plan. Imports
// go strictly downward, and siblings never import each other.
var below = map[string][]string{
	"internal/bus":                     {},
	"internal/wire":                    {"internal/bus"},
	"internal/store":                   {"internal/bus", "internal/wire"},
	"internal/store/storetest":         {"internal/bus", "internal/store"}, // for tests only
	"internal/telemetry":               {"internal/bus", "internal/store"},
	"internal/telemetry/exceptions":    {},
	"internal/telemetry/logs":          {},
	"internal/telemetry/metrics":       {"internal/bus", "internal/store", "internal/telemetry"},
	"internal/telemetry/metricservice": {"internal/bus", "internal/telemetry"},
	"internal/telemetry/tracing":       {},
	"internal/ingest": {"internal/bus", "internal/wire", "internal/store", "internal/telemetry",
		"internal/telemetry/tracing"},
	"internal/outbound": {"internal/bus"},
	"internal/delivery": {"internal/bus", "internal/wire", "internal/store", "internal/outbound", "internal/telemetry",
		"internal/telemetry/exceptions", "internal/telemetry/logs", "internal/telemetry/tracing"},
	"internal/maintenance": {"internal/bus", "internal/store", "internal/telemetry", "internal/telemetry/metricservice"},
	"internal/worker":      {"internal/bus", "internal/store", "internal/telemetry", "internal/telemetry/exceptions"},
	"internal/web/auth":    {"internal/bus"},
	"internal/web/server":  {"internal/telemetry/logs"},
	"internal/web": {"internal/bus", "internal/wire", "internal/store", "internal/telemetry/exceptions",
		"internal/telemetry/tracing", "internal/ingest", "internal/web/auth", "internal/web/server"},
	"client":               {}, // other programs import it
	"internal/selfsigned":  {},
	"internal/bench/load":  {"internal/selfsigned"},
	"internal/bench/stack": {"internal/bench/load"},
	"internal/bench":       {"client", "internal/bench/load", "internal/bench/stack"}, // it measures from outside
	"internal/top":         {"client", "internal/bus"},
	"internal/app": {"internal/bus", "internal/store", "internal/outbound", "internal/telemetry", "internal/telemetry/exceptions",
		"internal/telemetry/logs", "internal/telemetry/metrics", "internal/telemetry/metricservice",
		"internal/telemetry/tracing", "internal/ingest", "internal/delivery",
		"internal/maintenance", "internal/worker", "internal/web", "internal/web/server"},
	"internal/test":         {}, // its tests import what they need
	"internal/test/chaos":   {},
	"internal/test/bustest": {"internal/app", "internal/store", "internal/store/storetest"},
	"cmd/web":               {"internal/app"},
	"cmd/worker":            {"internal/app"},
	"cmd/rtm": {"client", "internal/app", "internal/bench", "internal/bench/stack", "internal/bus",
		"internal/selfsigned", "internal/telemetry/logs", "internal/top"},
}

// only lists which packages of ours may import a library.
var only = map[string][]string{
	"github.com/redis/go-redis/":           {"internal/store", "internal/store/storetest", "internal/bench/stack"},
	"github.com/vmihailenco/msgpack/":      {"internal/wire"},
	"github.com/go-chi/chi/":               {"internal/web"},
	"github.com/abbot/go-http-auth":        {"internal/web/auth"},
	"github.com/prometheus/client_golang/": {"internal/telemetry", "internal/telemetry/metrics"},
	"github.com/prometheus/client_model/":  {"internal/top"},
	"github.com/prometheus/common/":        {"internal/top"},
	"charm.land/":                          {"internal/top"},
	"github.com/charmbracelet/x/ansi":      {"internal/top"},
	"github.com/getsentry/sentry-go":       {"internal/telemetry/exceptions"},
	"github.com/honeybadger-io/":           {"internal/telemetry/exceptions"},
	"github.com/newrelic/":                 {"internal/telemetry/exceptions"},
	"go.opentelemetry.io/":                 {"internal/telemetry/tracing"},
	"github.com/DataDog/":                  {"internal/telemetry/metricservice"},
	"github.com/alicebob/miniredis/":       {"cmd/rtm", "internal/store/storetest"},
	"github.com/spf13/cobra":               {"cmd/rtm"},
	"go.yaml.in/yaml/":                     {"cmd/rtm"},
	"github.com/schollz/progressbar/":      {"cmd/rtm"},
	"github.com/rogpeppe/go-internal":      {},
	"golang.org/x/term":                    {"cmd/rtm"},
	"github.com/gofrs/flock":               {"cmd/rtm"},
	"golang.org/x/sys":                     {"cmd/rtm"},
	"golang.org/x/net/":                    {"internal/outbound"},
	"github.com/cenkalti/backoff/":         {"client"},
	"github.com/google/pprof/":             {"internal/bench"},
	"github.com/HdrHistogram/":             {"internal/bench/load"},
	"github.com/stretchr/testify/":         {"internal/store/storetest", "internal/test/bustest"},
	"routemaster/internal/store/storetest": {"internal/test/bustest"},
	"github.com/Shopify/toxiproxy/":        {},
	"github.com/rs/zerolog":                {},
}

func TestImportsFollowTheFloorPlan(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "../../...").Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	seen := 0
	for {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		err := decoder.Decode(&pkg)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		seen++
		name := strings.TrimPrefix(pkg.ImportPath, module)
		allowed, known := below[name]
		if !known {
			t.Errorf("%s is not on the floor plan: add it there, with what it may import", name)
		}
		for _, imported := range pkg.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s must not import %s", name, ours)
			}
			for library, importers := range only {
				if strings.HasPrefix(imported, library) && !slices.Contains(importers, name) {
					t.Errorf("%s must not import %s: only %v may", name, imported, importers)
				}
			}
		}
	}
	require.Equal(t, len(below), seen, "a package of the floor plan is not there")
}
