package bus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestParseOption(t *testing.T) {
	const keep = `"keep_events":10000,"keep_bytes":10000000,"keep_age":604800000`
	for _, c := range []struct{ name, text, canonical string }{
		{"max_bytes", "1024", "1024"},
		{"max_bytes", " 8388608\n", "8388608"},
		{"max_bytes", "null", ""},
		{"max_requests_per_minute", "6000000", "6000000"},
		{"max_events_per_minute", "600000000", "600000000"},
		{"lanes", "1", ""},
		{"lanes", "64", "64"},
		{"lanes", "null", ""},
		{"order_key", `"/url"`, ""},
		{"order_key", `"/data/a~1b~0c"`, `"/data/a~1b~0c"`},
		{"order_key", `"/` + strings.Repeat("é", 127) + `"`, `"/` + strings.Repeat("é", 127) + `"`},
		{"strict_order", "true", "true"},
		{"strict_order", "false", ""},
		{"partial", "true", "true"},
		{"keep_age", "60000", "60000"},
		{"keep_age", "2592000000", "2592000000"},
		{"keep_events", "1000000000", "1000000000"},
		{"gap_notices", "true", "true"},
		{"gap_notices", "false", ""},
		{"partial", "null", ""},
		{"dead_letters", "null", ""},
		{"dead_letters", "{}", `{` + keep + `}`},
		{"dead_letters", `{"keep_bytes": null, "age": 60000, "attempts": 3}`, `{"attempts":3,"age":60000,` + keep + `}`},
		{"dead_letters", `{"keep_age":60000,"keep_events":1,"keep_bytes":1000}`, `{"keep_events":1,"keep_bytes":1000,"keep_age":60000}`},
		{"dead_letters", `{"\u0061ge":2592000000}`, `{"age":2592000000,` + keep + `}`},
		{"log_attempts", `"failures"`, ""},
		{"log_attempts", `"none"`, `"none"`},
		{"log_attempts", `"all"`, `"all"`},
	} {
		canonical, err := bus.ParseOption(c.name, c.text)
		require.NoError(t, err, "%s %s", c.name, c.text)
		assert.Equal(t, c.canonical, canonical, "%s %s", c.name, c.text)
		if canonical == "" {
			continue
		}
		again, err := bus.ParseOption(c.name, canonical)
		require.NoError(t, err)
		assert.Equal(t, canonical, again, "the canonical form is not canonical")
		o, err := bus.ParseOptions(map[string]string{c.name: canonical})
		require.NoError(t, err)
		assert.Equal(t, canonical, o.JSON(c.name))
	}
}

func TestParseOptionRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, pointer string }{
		{"filter", "{}", "/filter"},
		{"lanes", "0", "/lanes"},
		{"lanes", "65", "/lanes"},
		{"lanes", "1.5", "/lanes"},
		{"lanes", `"4"`, "/lanes"},
		{"order_key", "1", "/order_key"},
		{"order_key", `""`, "/order_key"},
		{"order_key", `"url"`, "/order_key"},
		{"order_key", `"/data/~2"`, "/order_key"},
		{"order_key", `"/data~"`, "/order_key"},
		{"order_key", `"/` + strings.Repeat("é", 128) + `"`, "/order_key"},
		{"keep_age", "59999", "/keep_age"},
		{"keep_age", "2592000001", "/keep_age"},
		{"keep_events", "0", "/keep_events"},
		{"gap_notices", "1", "/gap_notices"},
		{"a/b~c", "4", "/a~1b~0c"},
		{"plan", `"x"`, "/plan"},
		{"max_bytes", "1023", "/max_bytes"},
		{"max_bytes", "8388609", "/max_bytes"},
		{"max_bytes", "2048.0", "/max_bytes"},
		{"max_bytes", "1.5", "/max_bytes"},
		{"max_bytes", "2e3", "/max_bytes"},
		{"max_bytes", "99999999999999999999", "/max_bytes"},
		{"max_bytes", `"2048"`, "/max_bytes"},
		{"max_bytes", "+2048", "/max_bytes"},
		{"max_bytes", "02048", "/max_bytes"},
		{"max_bytes", "2048 2048", "/max_bytes"},
		{"max_bytes", "", "/max_bytes"},
		{"max_requests_per_minute", "0", "/max_requests_per_minute"},
		{"max_requests_per_minute", "6000001", "/max_requests_per_minute"},
		{"max_events_per_minute", "-1", "/max_events_per_minute"},
		{"max_events_per_minute", "600000001", "/max_events_per_minute"},
		{"strict_order", "1", "/strict_order"},
		{"partial", `"true"`, "/partial"},
		{"log_attempts", `"some"`, "/log_attempts"},
		{"log_attempts", "1", "/log_attempts"},
		{"dead_letters", "true", "/dead_letters"},
		{"dead_letters", "[]", "/dead_letters"},
		{"dead_letters", `"{}"`, "/dead_letters"},
		{"dead_letters", `{"attempts":3`, "/dead_letters"},
		{"dead_letters", `{"attempts":3,"attempts":3}`, "/dead_letters/attempts"},
		{"dead_letters", `{"attempts":3,"\u0061ttempts":null}`, "/dead_letters/attempts"},
		{"dead_letters", `{"Attempts":3}`, "/dead_letters/Attempts"},
		{"dead_letters", `{"attempts":1001}`, "/dead_letters/attempts"},
		{"dead_letters", `{"attempts":1.5}`, "/dead_letters/attempts"},
		{"dead_letters", `{"age":59999}`, "/dead_letters/age"},
		{"dead_letters", `{"age":2592000001}`, "/dead_letters/age"},
		{"dead_letters", `{"keep_events":0}`, "/dead_letters/keep_events"},
		{"dead_letters", `{"keep_bytes":999}`, "/dead_letters/keep_bytes"},
		{"dead_letters", `{"keep_age":{"attempts":3}}`, "/dead_letters/keep_age"},
	} {
		_, err := bus.ParseOption(c.name, c.text)
		invalid, ok := errors.AsType[*bus.Invalid](err)
		require.True(t, ok, "%s %s: %v", c.name, c.text, err)
		assert.Equal(t, c.pointer, invalid.Pointer, "%s %s", c.name, c.text)
	}
}

func TestParseOptions(t *testing.T) {
	o, err := bus.ParseOptions(map[string]string{
		"max_bytes": "4096", "max_requests_per_minute": "60", "max_events_per_minute": "6000",
		"strict_order": "true", "partial": "true", "log_attempts": `"all"`,
		"dead_letters": `{"attempts":20,"age":259200000}`,
		"plan":         "abcdefgh", "secrets": "[]",
	})
	require.NoError(t, err)
	assert.Equal(t, bus.Options{
		MaxBytes: 4096, MaxRequestsPerMinute: 60, MaxEventsPerMinute: 6000,
		StrictOrder: true, Partial: true, LogAttempts: bus.LogAll,
		DeadLetters: &bus.DeadLetters{
			Attempts: 20, Age: 72 * time.Hour, KeepEvents: 10_000, KeepBytes: 10_000_000, KeepAge: 168 * time.Hour,
		},
	}, o)

	o, err = bus.ParseOptions(map[string]string{"max_bytes": "x", "partial": "true"})
	assert.EqualError(t, err, "/max_bytes: must be JSON")
	assert.Equal(t, bus.Options{Partial: true}, o, "an option that cannot be read has harmed others")
}

// Each option has a name of its own, and the zero value has the defaults.
func TestOptionNames(t *testing.T) {
	shown := map[string]string{}
	for _, name := range bus.OptionNames() {
		shown[name] = bus.Options{}.JSON(name)
	}
	assert.Equal(t, map[string]string{
		"max_bytes": "null", "max_requests_per_minute": "null", "max_events_per_minute": "null",
		"lanes": "1", "order_key": `"/url"`, "strict_order": "false", "partial": "false", "keep_age": "null", "keep_events": "null",
		"gap_notices": "false", "dead_letters": "null", "log_attempts": `"failures"`,
	}, shown)
	assert.Len(t, bus.OptionNames(), len(shown))
}
