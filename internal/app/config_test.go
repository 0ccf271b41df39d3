package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
)

func load(t *testing.T, variables map[string]string) (app.Config, error) {
	t.Helper()
	return app.LoadConfig(func(name string) string { return variables[name] })
}

func TestConfigDefaults(t *testing.T) {
	c, err := load(t, nil)
	require.NoError(t, err)
	deny, err := bus.ParseDenyList("loopback,link-local")
	require.NoError(t, err)
	assert.Equal(t, app.Config{
		Port: 17890, RedisURL: "redis://localhost:6379/0",
		WorkerThreads: 32, SubscriberDeliveries: 1, AcquireTimeout: 5 * time.Second,
		ConnectTimeout: 2 * time.Second, Timeout: 20 * time.Second, VerifyTLS: true,
		HealRate: 1, DamageRate: -2, MaxBackoff: time.Minute,
		MaxEventData: 64, ScalingThreshold: 100, ScalingDeadline: time.Second, ForceTLS: true,
		NonceTTL: 5 * time.Minute, CallbackDeny: deny,
		LogLevel: slog.LevelInfo,
	}, c)
}

func TestConfigIsRead(t *testing.T) {
	c, err := load(t, map[string]string{
		"PORT": "80", "ROUTEMASTER_ROOT_KEY": "key", "ROUTEMASTER_CLIENTS": "a--1, b,",
		"REDIS_ENV_KEY": "MY_REDIS", "MY_REDIS": "rediss://u:p@r:1/2", "ROUTEMASTER_REDIS_URL": "redis://other",
		"ROUTEMASTER_REDIS_NAMESPACE": "rm:", "ROUTEMASTER_SSL_VERIFY": "No", "FORCE_SSL": "0",
		"MAX_BACKOFF_MS": "1500", "ROUTEMASTER_LOG_LEVEL": "debug", "ROUTEMASTER_LOG_FORMAT": "JSON",
		"ROUTEMASTER_HP_DAMAGE_RATE": "-5",
	})
	require.NoError(t, err)
	assert.Equal(t, 80, c.Port)
	assert.Equal(t, "key", c.RootKey)
	assert.Equal(t, []bus.Token{"a--1", "b"}, c.Clients)
	assert.Equal(t, "rediss://u:p@r:1/2", c.RedisURL)
	assert.Equal(t, "rm:", c.RedisNamespace)
	assert.False(t, c.VerifyTLS)
	assert.False(t, c.ForceTLS)
	assert.Equal(t, 1500*time.Millisecond, c.MaxBackoff)
	assert.Equal(t, slog.LevelDebug, c.LogLevel)
	assert.True(t, c.LogJSON)
	assert.Equal(t, -5, c.DamageRate)
	for _, yes := range []string{"YES", "true", "on", "1"} {
		c, err := load(t, map[string]string{"ROUTEMASTER_SSL_VERIFY": yes})
		require.NoError(t, err)
		assert.True(t, c.VerifyTLS, yes)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"PORT", "http", `PORT="http" is not allowed: it must be an integer from 0 to 65535`},
		{"PORT", "65536", `PORT="65536" is not allowed: it must be an integer from 0 to 65535`},
		{"ROUTEMASTER_WORKER_THREADS", "0", `ROUTEMASTER_WORKER_THREADS="0" is not allowed: it must be an integer from 1 to 10000`},
		{"FORCE_SSL", "maybe", `FORCE_SSL="maybe" is not allowed: it must be one of yes, true, on, 1, no, false, off, 0`},
		{"ROUTEMASTER_LOG_LEVEL", "LOUD", `ROUTEMASTER_LOG_LEVEL="LOUD" is not allowed: it must be one of DEBUG, INFO, WARN, ERROR`},
		{"ROUTEMASTER_HP_DAMAGE_RATE", "2", `ROUTEMASTER_HP_DAMAGE_RATE="2" is not allowed: it must be an integer from -100 to 0`},
		{"ROUTEMASTER_REDIS_NAMESPACE", "a*", `ROUTEMASTER_REDIS_NAMESPACE="a*" is not allowed: it must be at most 64 letters, digits and : . _ -`},
		{"ROUTEMASTER_REDIS_URL", "http://u:secret@h/", `ROUTEMASTER_REDIS_URL=(not shown) is not allowed: it must be like redis://user:password@host:6379/0, rediss://host:6379/0 or unix:///path?db=0`},
		{"ROUTEMASTER_REDIS_URL", "redis://u:sec%ret@h/", `ROUTEMASTER_REDIS_URL=(not shown) is not allowed: it must be like redis://user:password@host:6379/0, rediss://host:6379/0 or unix:///path?db=0`},
		{"ROUTEMASTER_TLS_CERT", "a.pem", `ROUTEMASTER_TLS_CERT="a.pem" is not allowed: it must be set together with ROUTEMASTER_TLS_KEY, or not at all`},
		{"ROUTEMASTER_CALLBACK_DENY", "lan", `ROUTEMASTER_CALLBACK_DENY="lan" is not allowed: it must be none, or a comma-separated list of loopback, link-local, private and CIDRs; "lan" is neither loopback, link-local, private, nor a CIDR such as 10.0.0.0/8`},
		{"ROUTEMASTER_CLIENTS", "ok,Secret!", `ROUTEMASTER_CLIENTS=(not shown) is not allowed: it must be comma-separated tokens; token 2 is none: a token is 1 to 64 characters of a-z, 0-9, colon, _ and -`},
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
