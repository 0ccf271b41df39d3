package app

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownVariablesAreNamedWithTheNearest(t *testing.T) {
	values := map[string]string{
		"ROUTEMASTER_WORKER_THREAD": "1", "ROUTEMASTER_REDIS_ULR": "1", "ROUTEMASTER_PORT": "8080", "ROUTEMASTER_FORCE_SSL": "no",
		"ROUTEMASTER_TIMEOUT": "1", "ROUTEMASTER_TOKEN": "1", "ROUTEMASTER_OUR_REDIS": "redis://x", "REDIS_ENV_KEY": "ROUTEMASTER_OUR_REDIS",
		"ROUTEMASTER_SERVICE_HOST": "10.0.0.1", "ROUTEMASTER_SERVICE_PORT_HTTP": "1", "ROUTEMASTER_PORT_17890_TCP_ADDR": "10.0.0.1",
		"ROUTEMASTER_WEB_PORT": "tcp://10.0.0.1:80", "OTHER": "1",
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	assert.Equal(t, []unknownVariable{
		{"ROUTEMASTER_FORCE_SSL", "FORCE_SSL"},
		{"ROUTEMASTER_PORT", "PORT"},
		{"ROUTEMASTER_REDIS_ULR", "ROUTEMASTER_REDIS_URL"},
		{"ROUTEMASTER_WORKER_THREAD", "ROUTEMASTER_WORKER_THREADS"},
	}, unknownVariables(names, func(name string) string { return values[name] }))
}

func TestKeysOfTheOriginalAreNamedWithWhatToSet(t *testing.T) {
	warned := func(values map[string]string) string {
		var log strings.Builder
		warnOfUnusedKeys(slog.New(slog.NewTextHandler(&log, nil)), func(name string) string { return values[name] })
		assert.NotContains(t, log.String(), "secret")
		return log.String()
	}
	assert.Empty(t, warned(nil))
	all := warned(map[string]string{
		"DATADOG_API_KEY": "secret", "DATADOG_APP_KEY": "secret", "HONEYBADGER_API_KEY": "secret", "NEW_RELIC_LICENSE_KEY": "secret",
		"METRIC_COLLECTION_SERVICE": "datadog",
	})
	for variable, instead := range map[string]string{
		"DATADOG_API_KEY": "DD_AGENT_HOST", "DATADOG_APP_KEY": "DD_AGENT_HOST", "HONEYBADGER_API_KEY": "EXCEPTION_SERVICE=honeybadger",
		"NEW_RELIC_LICENSE_KEY": "EXCEPTION_SERVICE=new_relic",
	} {
		assert.Regexp(t, `(?m)^.*level=WARN msg="key not used" variable=`+variable+` instead=".*`+instead+`.*$`, all)
	}
	assert.Empty(t, warned(map[string]string{
		"DATADOG_API_KEY": "secret", "DD_AGENT_HOST": "agent", "HONEYBADGER_API_KEY": "secret", "EXCEPTION_SERVICE_URL": "https://secret@x.example",
	}), "what takes their place is set")
}

// TestEveryVariableInTheSourcesIsKnown keeps the list true when a program reads a new one.
func TestEveryVariableInTheSourcesIsKnown(t *testing.T) {
	known := knownVariables()
	variables, found := regexp.MustCompile(`"(ROUTEMASTER_[A-Z_]*[A-Z])"`), 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range variables.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.Contains(t, known, match[1], path)
		}
		return err
	}))
	assert.Greater(t, found, 30)
}

// configurationRow is a row of the tables of docs/configuration.md: name, default, unit.
var configurationRow = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([^|]*?) ?\\| ([^|]*?) ?\\|")

func TestTheConfigurationPageNamesEveryVariable(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	var named []string
	for _, row := range configurationRow.FindAllStringSubmatch(string(page), -1) {
		named = append(named, row[1])
		if !slices.Contains(commandVariables, row[1]) {
			requireDefault(t, row[1], row[2], row[3])
		}
	}
	known := append(knownVariables(), "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") // read only where traces are on
	assert.ElementsMatch(t, known, named)
}

// requireDefault sets a variable to its documented default, which must change nothing, and then to
// one more, which must change a duration by as much if the unit is one of time.
func requireDefault(t *testing.T, name, documented, unit string) {
	t.Helper()
	load := func(value string) Config {
		config, err := LoadConfig(func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		})
		require.NoError(t, err, name)
		return config
	}
	without := load("")
	assert.Equal(t, without, load(documented), "the default of %s", name)
	number, err := strconv.Atoi(documented)
	if unit := units[unit]; unit != 0 && assert.NoError(t, err, name) {
		changed := reflect.ValueOf(load(strconv.Itoa(number + 1)))
		for i := range changed.NumField() {
			if !changed.Type().Field(i).IsExported() {
				continue
			}
			after, before := changed.Field(i).Interface(), reflect.ValueOf(without).Field(i).Interface()
			if !assert.ObjectsAreEqual(before, after) {
				assert.Equal(t, time.Duration(number+1)*unit, after, name)
			}
		}
	}
}

var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond}
