package jobs_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
)

// valid returns a valid type.
func valid() jobs.Type {
	return jobs.Type{
		Name: "invoice-shipments", Strategy: jobs.AtLeastOnce, Attempts: 7, Concurrency: 3,
		Timeout: jobs.DefaultTimeout, Retention: jobs.DefaultRetention,
	}
}

func TestTypesAreValid(t *testing.T) {
	for name, change := range map[string]func(*jobs.Type){
		"as it is":          func(*jobs.Type) {},
		"the shortest name": func(t *jobs.Type) { t.Name = "7" },
		"the longest name":  func(t *jobs.Type) { t.Name = jobs.TypeName(strings.Repeat("z", 255)) },
		"any character":     func(t *jobs.Type) { t.Name = "-Az0.:_" },
		"nearly a path":     func(t *jobs.Type) { t.Name = "..." },
		"nearly an id":      func(t *jobs.Type) { t.Name = "jobs" },
		"the highest": func(t *jobs.Type) {
			t.Attempts, t.Concurrency, t.Timeout, t.Retention = 32767, 32767, 24*time.Hour, 365*24*time.Hour
		},
		"the lowest":   func(t *jobs.Type) { t.Attempts, t.Concurrency, t.Timeout, t.Retention = 1, 1, time.Second, 0 },
		"at most once": func(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 1 },
		"a schedule": func(t *jobs.Type) {
			t.Schedule, t.Timezone, t.ScheduleData = "0 6 * * *", "Europe/Berlin", []byte("{}")
		},
		"a client":     func(t *jobs.Type) { t.Clients = bus.Clients{"a:1_b-"} },
		"no time zone": func(t *jobs.Type) { t.Schedule = "*/5 * * * *" },
	} {
		checked := valid()
		change(&checked)
		assert.NoError(t, checked.Validate(), name)
	}
}

func TestTypesAreRefused(t *testing.T) {
	for _, c := range []struct {
		change              func(*jobs.Type)
		id, pointer, detail string
	}{
		{func(t *jobs.Type) { *t = jobs.Type{} }, "missing_parameter", "/name", "is required"},
		{func(t *jobs.Type) { *t = jobs.Type{Name: "meta.shutdown"} }, "forbidden_parameter", "/name", "another name"},
		{func(t *jobs.Type) { t.Name = "job_a" }, "invalid_parameter", "/name", `must not begin with "job_"`},
		{func(t *jobs.Type) { t.Name = ".." }, "invalid_parameter", "/name", "in a path"},
		{func(t *jobs.Type) { t.Name = "a b" }, "invalid_parameter", "/name", "1 to 255 characters"},
		{func(t *jobs.Type) { t.Name = "a/b" }, "invalid_parameter", "/name", "1 to 255 characters"},
		{func(t *jobs.Type) { t.Name = "a\n" }, "invalid_parameter", "/name", "1 to 255 characters"},
		{func(t *jobs.Type) { t.Name = "Rëchnung" }, "invalid_parameter", "/name", "1 to 255 characters"},
		{func(t *jobs.Type) { t.Name = jobs.TypeName(strings.Repeat("a", 256)) }, "invalid_parameter", "/name", "1 to 255 characters"},
		{func(t *jobs.Type) { *t = jobs.Type{Name: "a"} }, "missing_parameter", "/delivery_strategy", "at_least_once"},
		{func(t *jobs.Type) { *t = jobs.Type{Name: "a", Strategy: "foo"} }, "invalid_delivery_strategy", "/delivery_strategy", "at_most_once"},
		{func(t *jobs.Type) { t.Strategy, t.Concurrency = jobs.AtMostOnce, 0 }, "invalid_attempts", "/attempts", "must be 1"},
		{func(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 0 }, "invalid_parameter", "/attempts", "is required, and must be 1 to 32767"},
		{func(t *jobs.Type) { t.Attempts, t.Concurrency = -1, 0 }, "invalid_parameter", "/attempts", "must be 1 to 32767: how often"},
		{func(t *jobs.Type) { t.Attempts = 32768 }, "invalid_parameter", "/attempts", "1 to 32767"},
		{func(t *jobs.Type) { t.Concurrency, t.Timeout = 0, 0 }, "invalid_parameter", "/concurrency", "is required, and must be 1 to 32767"},
		{func(t *jobs.Type) { t.Concurrency = 32768 }, "invalid_parameter", "/concurrency", "1 to 32767"},
		{func(t *jobs.Type) { t.Timeout, t.Retention = 999*time.Millisecond, -1 }, "invalid_parameter", "/timeout", "1000 to 86400000 ms"},
		{func(t *jobs.Type) { t.Timeout = 24*time.Hour + 1 }, "invalid_parameter", "/timeout", "1000 to 86400000 ms"},
		{func(t *jobs.Type) { t.Retention = -1 }, "invalid_parameter", "/retention", "0 to 31536000 s"},
		{func(t *jobs.Type) { t.Retention = jobs.MaxRetention + 1 }, "invalid_parameter", "/retention", "0 to 31536000 s"},
		{func(t *jobs.Type) { t.Timezone = "UTC" }, "invalid_parameter", "/timezone", "beside a schedule"},
		{func(t *jobs.Type) { t.ScheduleData = []byte("7") }, "invalid_parameter", "/schedule_data", "beside a schedule"},
		{func(t *jobs.Type) {
			t.Schedule, t.ScheduleData = "* * * * *", bytes.Repeat([]byte("["), bus.MaxDepth+1)
		}, "invalid_parameter", "/schedule_data", "nested more than 100 deep"},
		{func(t *jobs.Type) { t.Schedule, t.ScheduleData = "* * * * *", make([]byte, jobs.MaxData+1) }, "invalid_parameter", "/schedule_data", "at most 102400"},
		{func(t *jobs.Type) { t.Clients = bus.Clients{} }, "invalid_parameter", "/clients", "names no client"},
		{func(t *jobs.Type) { t.Clients = bus.Clients{"a", "A b"} }, "invalid_parameter", "/clients/1", "is not the name"},
		{func(t *jobs.Type) { t.Clients = bus.Clients{"root"} }, "invalid_parameter", "/clients/0", "root always may"},
		{func(t *jobs.Type) { t.Clients = bus.Clients{"a", "b", "a"} }, "invalid_parameter", "/clients/2", "a twice"},
		{func(t *jobs.Type) { t.Clients = make(bus.Clients, 33) }, "invalid_parameter", "/clients", "at most 32"},
		{func(t *jobs.Type) { t.Schedule, t.Timezone = "x", "Europe/Bielefeld" }, "invalid_parameter", "/timezone", "no time zone"},
		{func(t *jobs.Type) { t.Schedule, t.Timezone = "* * * *", "UTC" }, "invalid_parameter", "/schedule", "five fields"},
	} {
		refused := valid()
		c.change(&refused)
		requireRefused(t, refused.Validate(), c.id, c.pointer, c.detail)
	}
}

func requireRefused(t *testing.T, err error, id, pointer, detail string) {
	t.Helper()
	var invalid *bus.Invalid
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, []string{id, pointer}, []string{invalid.ID, invalid.Pointer}, invalid.Detail)
	assert.Contains(t, invalid.Detail, detail)
}

func TestURLsOfTypes(t *testing.T) {
	deny, err := bus.ParseDenyList(bus.DefaultDeny)
	require.NoError(t, err)
	for _, allowed := range []jobs.Type{
		{URL: "https://jobs.example/"}, {URL: "https://jobs.example:8443/a?b=c"}, {URL: "https://10.0.0.1/"}, {Pull: true},
	} {
		assert.NoError(t, allowed.ValidateURL(deny, false), allowed.URL)
	}
	below := jobs.Type{}
	assert.NoError(t, below.ValidateURL(deny, true))
	requireRefused(t, below.ValidateURL(deny, false), "missing_parameter", "/url", "DOWNSTREAM_URL")
	for url, detail := range map[string]string{
		"http://jobs.example/":                              "must be an https URL",
		"jobs.example":                                      "must be an https URL",
		"https://jobs.example/ä":                            "non-ASCII",
		"https://user@jobs.example/":                        "must not have a user name",
		"https://jobs.example/#":                            "must not have a fragment",
		"https://localhost/":                                "ROUTEMASTER_CALLBACK_DENY",
		"https://169.254.169.254/latest":                    "ROUTEMASTER_CALLBACK_DENY",
		"https://jobs.example/" + strings.Repeat("a", 1024): "at most 1024",
	} {
		refused := jobs.Type{URL: url}
		requireRefused(t, refused.ValidateURL(deny, true), "invalid_parameter", "/url", detail)
	}
}
