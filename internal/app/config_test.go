package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/telemetry/vendors"
)

func load(t *testing.T, variables map[string]string) (app.Config, error) {
	t.Helper()
	return app.LoadConfig(func(name string) string { return variables[name] })
}

func TestConfigDefaults(t *testing.T) {
	c, err := load(t, nil)
	require.NoError(t, err)
	deny, err := bus.ParseDenyList("loopback,link-local,metadata")
	require.NoError(t, err)
	assert.Equal(t, app.Config{
		Port: 17890, RedisURL: "redis://localhost:6379/0", Memory: bus.MemoryLimits{MinFree: 10_000_000},
		WorkerThreads: 32, SubscriberDeliveries: 1, AcquireTimeout: 5 * time.Second,
		ConnectTimeout: 2 * time.Second, Timeout: 20 * time.Second, VerifyTLS: true,
		HealRate: 1, DamageRate: -2, MaxBackoff: time.Minute, AttemptsKept: 20, AttemptExcerpt: 256,
		JobThreads: 32, MachineThreads: 32, MaxEventData: 64, ScalingThreshold: 100, ScalingDeadline: time.Second, ForceTLS: true,
		MaxSubscriptionTopics: 1000, MaxClientTopics: 1000, MaxTopics: 100_000,
		JobTypes: jobs.DefaultTypeLimits,
		NonceTTL: 5 * time.Minute, CallbackDeny: deny, IdempotencyTTL: time.Hour, IdempotencyKeys: 100_000,
		CounterFlushInterval: 5 * time.Second, MonitorInterval: 10 * time.Second, MetricService: "none",
		DatadogAgent: "localhost:8125", AppName: "routemaster", Env: "production", Console: "on",
		Exceptions: vendors.ExceptionService{Name: "print"},
		LogLevel:   slog.LevelInfo,
	}, c)
}

func TestConfigIsRead(t *testing.T) {
	c, err := load(t, map[string]string{
		"PORT": "80", "ROUTEMASTER_ROOT_KEY": "key", "ROUTEMASTER_CLIENTS": "a--1, b,",
		"REDIS_ENV_KEY": "MY_REDIS", "MY_REDIS": "rediss://u:p@r:1/2", "ROUTEMASTER_REDIS_URL": "redis://other",
		"ROUTEMASTER_REDIS_NAMESPACE": "rm:", "ROUTEMASTER_SSL_VERIFY": "No", "FORCE_SSL": "0",
		"MAX_BACKOFF_MS": "1500", "ROUTEMASTER_LOG_LEVEL": "debug", "ROUTEMASTER_LOG_FORMAT": "JSON",
		"ROUTEMASTER_SECRETS_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=, //79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=",
		"ROUTEMASTER_JOB_THREADS": "0", "DOWNSTREAM_URL": "http://10.0.0.1:81/a/", "DOWNSTREAM_WORKER_AUTH": "s:3",
		"ROUTEMASTER_CLIENT_MEMORY":  "200MB, shop=1GiB,root=5000",
		"ROUTEMASTER_HP_DAMAGE_RATE": "-5", "ROUTEMASTER_REDIS_MAX_MEM": "4000000000", "ROUTEMASTER_REDIS_MIN_FREE": "1000",
	})
	require.NoError(t, err)
	assert.Equal(t, 80, c.Port)
	assert.Equal(t, "key", c.RootKey)
	assert.Equal(t, []bus.Token{"a--1", "b"}, c.Clients)
	assert.Equal(t, "rediss://u:p@r:1/2", c.RedisURL)
	assert.Equal(t, "rm:", c.RedisNamespace)
	assert.False(t, c.VerifyTLS)
	assert.False(t, c.ForceTLS)
	assert.Equal(t, bus.MemoryLimits{Max: 4_000_000_000, MinFree: 1000}, c.Memory)
	assert.Equal(t, account.Clients{Each: 200_000_000, Named: map[bus.ClientName]int64{"shop": 1 << 30, "root": 5000}}, c.ClientMemory)
	assert.Equal(t, 1500*time.Millisecond, c.MaxBackoff)
	assert.Equal(t, slog.LevelDebug, c.LogLevel)
	assert.True(t, c.LogJSON)
	assert.Equal(t, -5, c.DamageRate)
	assert.Equal(t, 0, c.JobThreads)
	assert.Equal(t, "http://10.0.0.1:81/a", c.DownstreamURL)
	assert.Equal(t, "s:3", c.DownstreamAuth)
	assert.Equal(t, "2 keys", c.Secrets.String())
	for _, yes := range []string{"YES", "true", "on", "1"} {
		c, err := load(t, map[string]string{"ROUTEMASTER_SSL_VERIFY": yes})
		require.NoError(t, err)
		assert.True(t, c.VerifyTLS, yes)
	}
}

func TestTheDatadogAgentIsWhereItsOwnClientsLookForIt(t *testing.T) {
	for _, c := range []struct{ host, port, url, want string }{
		{"", "", "", "localhost:8125"}, {"agent", "", "", "agent:8125"}, {"::1", "9", "", "[::1]:9"},
		{"agent", "9", "udp://other:10", "other:10"}, {"", "", "udp://other", "other:8125"},
		{"agent", "", "unix:///run/agent.socket", "unix:///run/agent.socket"},
	} {
		config, err := load(t, map[string]string{"DD_AGENT_HOST": c.host, "DD_DOGSTATSD_PORT": c.port, "DD_DOGSTATSD_URL": c.url})
		require.NoError(t, err)
		assert.Equal(t, c.want, config.DatadogAgent)
	}
}

func TestRedisMayBeACluster(t *testing.T) {
	for _, url := range []string{"redis+cluster://u:p@a:7000,b:7001", "rediss+cluster://a?read_timeout=9"} {
		c, err := load(t, map[string]string{"ROUTEMASTER_REDIS_URL": url})
		require.NoError(t, err)
		assert.Equal(t, url, c.RedisURL)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	const downstream = "like https://jobs.example.com/path, or http://…, without user name, query and fragment"
	const clientMemory = "it must be a size for each client, such as 200MB, and sizes by name, such as shop=1GB, with commas between them, each once"
	for _, c := range []struct{ name, value, want string }{
		{"PORT", "http", `PORT="http" is not allowed: it must be an integer from 0 to 65535`},
		{"PORT", "65536", `PORT="65536" is not allowed: it must be an integer from 0 to 65535`},
		{"ROUTEMASTER_WORKER_THREADS", "0", `ROUTEMASTER_WORKER_THREADS="0" is not allowed: it must be an integer from 1 to 10000`},
		{"ROUTEMASTER_REDIS_MAX_MEM", "20000000", `ROUTEMASTER_REDIS_MIN_FREE=10000000 is not allowed: it must be less than half of ROUTEMASTER_REDIS_MAX_MEM=20000000`},
		{"ROUTEMASTER_CLIENT_MEMORY", "1GB,2GB", `ROUTEMASTER_CLIENT_MEMORY="1GB,2GB" is not allowed: ` + clientMemory},
		{"ROUTEMASTER_CLIENT_MEMORY", "Shop=1GB", `ROUTEMASTER_CLIENT_MEMORY="Shop=1GB" is not allowed: ` + clientMemory},
		{"ROUTEMASTER_CLIENT_MEMORY", "shop=lots", `ROUTEMASTER_CLIENT_MEMORY="shop=lots" is not allowed: ` + clientMemory},
		{"ROUTEMASTER_CLIENT_MEMORY", "9999999999999GB", `ROUTEMASTER_CLIENT_MEMORY="9999999999999GB" is not allowed: ` + clientMemory},
		{"FORCE_SSL", "maybe", `FORCE_SSL="maybe" is not allowed: it must be one of yes, true, on, 1, no, false, off, 0`},
		{"ROUTEMASTER_LOG_LEVEL", "LOUD", `ROUTEMASTER_LOG_LEVEL="LOUD" is not allowed: it must be one of DEBUG, INFO, WARN, ERROR`},
		{"ROUTEMASTER_HP_DAMAGE_RATE", "2", `ROUTEMASTER_HP_DAMAGE_RATE="2" is not allowed: it must be an integer from -100 to 0`},
		{"ROUTEMASTER_REDIS_NAMESPACE", "a*", `ROUTEMASTER_REDIS_NAMESPACE="a*" is not allowed: it must be at most 64 letters, digits and : . _ -`},
		{"ROUTEMASTER_REDIS_URL", "http://u:secret@h/", `ROUTEMASTER_REDIS_URL=(not shown) is not allowed: it must be like redis://user:password@host:6379/0, rediss://host:6379/0, unix:///path?db=0, redis+sentinel://host:26379,host:26379/master/0 or redis+cluster://host:6379,host:6379`},
		{"ROUTEMASTER_REDIS_URL", "redis+cluster://u:secret@h/1", `ROUTEMASTER_REDIS_URL=(not shown) is not allowed: it must be like redis://user:password@host:6379/0, rediss://host:6379/0, unix:///path?db=0, redis+sentinel://host:26379,host:26379/master/0 or redis+cluster://host:6379,host:6379`},
		{"ROUTEMASTER_REDIS_URL", "redis://u:sec%ret@h/", `ROUTEMASTER_REDIS_URL=(not shown) is not allowed: it must be like redis://user:password@host:6379/0, rediss://host:6379/0, unix:///path?db=0, redis+sentinel://host:26379,host:26379/master/0 or redis+cluster://host:6379,host:6379`},
		{"ROUTEMASTER_TLS_CERT", "a.pem", `ROUTEMASTER_TLS_CERT="a.pem" is not allowed: it must be set together with ROUTEMASTER_TLS_KEY, or not at all`},
		{"ROUTEMASTER_IDEMPOTENCY_TTL", "59", `ROUTEMASTER_IDEMPOTENCY_TTL="59" is not allowed: it must be an integer from 60 to 86400`},
		{"ROUTEMASTER_IDEMPOTENCY_MAX", "7", `ROUTEMASTER_IDEMPOTENCY_MAX="7" is not allowed: it must be an integer from 8 to 1000000000`},
		{"ROUTEMASTER_CALLBACK_DENY", "lan", `ROUTEMASTER_CALLBACK_DENY="lan" is not allowed: it must be none, or a comma-separated list of loopback, link-local, metadata, private and CIDRs; "lan" is neither loopback, link-local, metadata, private, nor a CIDR such as 10.0.0.0/8`},
		{"METRIC_COLLECTION_SERVICE", "graphite", `METRIC_COLLECTION_SERVICE="graphite" is not allowed: it must be one of print, datadog, none`},
		{"ROUTEMASTER_MONITOR_INTERVAL", "0", `ROUTEMASTER_MONITOR_INTERVAL="0" is not allowed: it must be an integer from 1 to 3600`},
		{"ROUTEMASTER_METRICS_ADDR", "9090", `ROUTEMASTER_METRICS_ADDR="9090" is not allowed: it must be host:port, like 127.0.0.1:9090, or :9090 for all addresses of this host`},
		{"DD_DOGSTATSD_URL", "tcp://a", `DD_DOGSTATSD_URL="tcp://a" is not allowed: it must be like udp://host:8125 or unix:///path`},
		{"ROUTEMASTER_JOB_THREADS", "-1", `ROUTEMASTER_JOB_THREADS="-1" is not allowed: it must be an integer from 0 to 10000`},
		{"ROUTEMASTER_MACHINE_THREADS", "x", `ROUTEMASTER_MACHINE_THREADS="x" is not allowed: it must be an integer from 0 to 10000`},
		{"DOWNSTREAM_URL", "jobs.example:80", `DOWNSTREAM_URL=(not shown) is not allowed: it must be ` + downstream},
		{"DOWNSTREAM_URL", "http://jobs:secret@h/", `DOWNSTREAM_URL=(not shown) is not allowed: it must be ` + downstream},
		{"DOWNSTREAM_URL", "https://h/?a=b", `DOWNSTREAM_URL=(not shown) is not allowed: it must be ` + downstream},
		{"DOWNSTREAM_URL", "https:///v1", `DOWNSTREAM_URL=(not shown) is not allowed: it must be ` + downstream},
		{"ROUTEMASTER_CLIENTS", "ok,Secret!", `ROUTEMASTER_CLIENTS=(not shown) is not allowed: it must be comma-separated tokens; token 2 is invalid: a token is 1 to 64 characters of a-z, 0-9, colon, _ and -`},
		{"ROUTEMASTER_SECRETS_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=,secret", `ROUTEMASTER_SECRETS_KEY=(not shown) is not allowed: it must be comma-separated keys as openssl rand -base64 32 makes them; key 2 is not the base64 of 32 bytes`},
	} {
		_, err := load(t, map[string]string{c.name: c.value})
		var wrong *app.ConfigError
		require.ErrorAs(t, err, &wrong, c.name)
		assert.Equal(t, c.want, err.Error())
	}
}

func TestTheEnvironmentWinsOverTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(".env", []byte("PORT=1\nROUTEMASTER_ROOT_KEY=\"from file\"\n"), 0o600))
	t.Setenv("PORT", "2")
	lookup, err := app.LookupEnv()
	require.NoError(t, err)
	assert.Equal(t, "2", lookup("PORT"))
	assert.Equal(t, "from file", lookup("ROUTEMASTER_ROOT_KEY"))

	require.NoError(t, os.WriteFile(filepath.Join(".", ".env"), []byte("no assignment\n"), 0o600))
	_, err = app.LookupEnv()
	var wrong *app.ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.NotContains(t, err.Error(), "assignment", "the file's lines may be secret")
}

func TestDollarsInTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		`ROUTEMASTER_ROOT_KEY='Sup3r$ECRET'`: "Sup3r$ECRET", `ROUTEMASTER_ROOT_KEY=Sup3r\$ECRET`: "Sup3r$ECRET", `ROUTEMASTER_ROOT_KEY="Sup3r\$ECRET"`: "Sup3r$ECRET",
		`ROUTEMASTER_ROOT_KEY=Sup3r$ecret$`: "Sup3r$ecret$", `ROUTEMASTER_ROOT_KEY='a\$B'`: `a\$B`, `ROUTEMASTER_ROOT_KEY="a $ b" # $X`: "a $ b",
		"KEY=x\nROUTEMASTER_ROOT_KEY=a$KEY-${KEY}": "ax-x", "\ufeffROUTEMASTER_ROOT_KEY=marked": "marked",
	} {
		require.NoError(t, os.WriteFile(".env", []byte(line+"\nOTHER=1\n"), 0o600))
		lookup, err := app.LookupEnv()
		require.NoError(t, err, line)
		assert.Equal(t, want, lookup("ROUTEMASTER_ROOT_KEY"), line)
	}
	for _, line := range []string{
		"ROUTEMASTER_ROOT_KEY=Sup3r$ECRET", `ROUTEMASTER_ROOT_KEY="Sup3r$ECRET"`, "ROUTEMASTER_ROOT_KEY=a${ECRET}b", "ROUTEMASTER_ROOT_KEY=a$(ECRET)",
		"ROUTEMASTER_ROOT_KEY=a$1b", "ROUTEMASTER_ROOT_KEY=$ECRET\nECRET=below", "ECRET=\nROUTEMASTER_ROOT_KEY=a$ECRET",
	} {
		require.NoError(t, os.WriteFile(".env", []byte("OTHER=1\n"+line+"\n"), 0o600))
		_, err := app.LookupEnv()
		var wrong *app.ConfigError
		require.ErrorAs(t, err, &wrong, line)
		assert.Contains(t, err.Error(), "ROUTEMASTER_ROOT_KEY of the .env file has a $", line)
		assert.NotContains(t, err.Error(), "ECRET", line)
	}
}

func TestConfigOfTheExceptionService(t *testing.T) {
	license := strings.Repeat("a1", 20)
	for _, c := range []struct{ service, url string }{
		{"", ""}, {"print", "ignored"}, {"sentry", "https://key@o1.ingest.sentry.io/2"}, {"sentry", "http://key@localhost:9000/prefix/2"},
		{"honeybadger", "https://key@api.honeybadger.io"}, {"honeybadger", "http://key@localhost:1/"},
		{"new_relic", "https://" + license + "@collector.newrelic.com"}, {"NEW_RELIC", "https://" + license + "@collector.eu.newrelic.com:443/"},
	} {
		got, err := load(t, map[string]string{"EXCEPTION_SERVICE": c.service, "EXCEPTION_SERVICE_URL": c.url})
		require.NoError(t, err, "%v", c)
		assert.Equal(t, c.url, got.Exceptions.URL)
	}
	for service, want := range map[string]string{
		"sentry": "it must be the project's DSN, like https://PUBLIC_KEY@o1.ingest.sentry.io/2",
		"honeybadger": "it must be like https://API_KEY@api.honeybadger.io; " +
			"put in the key that is in HONEYBADGER_API_KEY, which is not read by itself",
		"new_relic": "it must be like https://LICENSE_KEY@collector.newrelic.com, with a license key of 40 characters; " +
			"put in the key that is in NEW_RELIC_LICENSE_KEY, which is not read by itself",
	} {
		keys := map[string]string{"EXCEPTION_SERVICE": service, "HONEYBADGER_API_KEY": "secret", "NEW_RELIC_LICENSE_KEY": "secret"}
		_, err := load(t, keys)
		assert.EqualError(t, err, "EXCEPTION_SERVICE_URL is not set, and EXCEPTION_SERVICE="+service+" needs it: "+want)
		keys["EXCEPTION_SERVICE_URL"] = "https://secret.example/"
		_, err = load(t, keys)
		assert.EqualError(t, err, "EXCEPTION_SERVICE_URL=(not shown) is not allowed: "+want)
	}
	for _, c := range []struct{ service, url, want string }{
		{"rollbar", "", `EXCEPTION_SERVICE="rollbar" is not allowed: it must be one of print, sentry, honeybadger, new_relic`},
		{"sentry", "", "the project's DSN"}, {"sentry", "https://sec%ret@x", "the project's DSN"}, {"sentry", "https://secret@x/", "the project's DSN"},
		{"sentry", "ftp://secret@x/1", "the project's DSN"},
		{"honeybadger", "", "like https://API_KEY@api.honeybadger.io"}, {"honeybadger", "secret", "like https://API_KEY@"},
		{"honeybadger", "https://api.honeybadger.io", "like https://API_KEY@"}, {"honeybadger", "https://secret@x/v1/notices", "like https://API_KEY@"},
		{"new_relic", "https://secret@collector.newrelic.com", "a license key of 40 characters"},
		{"new_relic", "http://" + license + "@collector.newrelic.com", "like https://LICENSE_KEY@"},
	} {
		_, err := load(t, map[string]string{"EXCEPTION_SERVICE": c.service, "EXCEPTION_SERVICE_URL": c.url})
		var wrong *app.ConfigError
		require.ErrorAs(t, err, &wrong, "%v", c)
		assert.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "secret")
		assert.NotContains(t, err.Error(), license)
	}
}

func TestConfigOfTraces(t *testing.T) {
	const endpoint, traces, exporter, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"
	for _, c := range []struct {
		variables map[string]string
		want      bool
	}{
		{nil, false},
		{map[string]string{endpoint: "http://localhost:4318"}, true},
		{map[string]string{traces: "http://localhost:4318/v1/traces"}, true},
		{map[string]string{exporter: "otlp"}, true},
		{map[string]string{exporter: "otlp", protocol: "http/protobuf"}, true},
		{map[string]string{exporter: "none", endpoint: "http://localhost:4318"}, false},
		{map[string]string{exporter: "otlp", "OTEL_SDK_DISABLED": "true"}, false},
		{map[string]string{protocol: "grpc"}, false},
	} {
		got, err := load(t, c.variables)
		require.NoError(t, err, "%v", c.variables)
		assert.Equal(t, c.want, got.Tracing, "%v", c.variables)
	}
	for want, variables := range map[string]map[string]string{
		`OTEL_TRACES_EXPORTER="zipkin" is not allowed: it must be one of otlp, none`:         {exporter: "zipkin"},
		`OTEL_EXPORTER_OTLP_PROTOCOL="grpc" is not allowed: it must be one of http/protobuf`: {endpoint: "http://localhost:4317", protocol: "grpc"},
	} {
		_, err := load(t, variables)
		assert.EqualError(t, err, want)
	}
}
