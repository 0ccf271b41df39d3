package app

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/clock"
	"routemaster/internal/jobs"
	"routemaster/internal/signature"
	"routemaster/internal/telemetry/vendors"
)

// Config is everything the environment decides. docs/configuration.md has the tables.
type Config struct {
	// Wall is the clock of the host; [time.Now] if nil. It is no setting: tests shift it.
	Wall func() time.Time
	// clock is the time of the daemon, which makes it.
	clock *clock.Clock

	Port    int
	RootKey string
	Clients []bus.Token

	RedisURL       string
	RedisNamespace string
	MinReplicas    int
	Memory         bus.MemoryLimits
	// ClientMemory limits how much memory each client's data may take.
	ClientMemory account.Clients

	WorkerThreads        int
	SubscriberDeliveries int
	AcquireTimeout       time.Duration
	ConnectTimeout       time.Duration
	Timeout              time.Duration
	VerifyTLS            bool
	HealRate, DamageRate int
	MaxBackoff           time.Duration
	// AttemptsKept is how many attempts of a subscriber are kept on record, AttemptExcerpt how many
	// bytes of an answer with each.
	AttemptsKept, AttemptExcerpt int

	// JobThreads is how many jobs of services a worker hands over at once; 0 if it runs none.
	JobThreads int
	// DownstreamURL receives the jobs whose type has no URL. It has no slash at its end.
	// DownstreamAuth is the password sent there.
	DownstreamURL, DownstreamAuth string

	// MachineThreads is how many labels of state machines a worker looks at at once; 0 if at none.
	MachineThreads int
	// Machines are the files with definitions of state machines that web applies when it starts.
	Machines []string

	// Secrets are the keys that subscribers' secrets are sealed with.
	Secrets signature.Keyring

	MaxEventData int
	// The limits of topics of a subscription, of a client, and of the bus.
	MaxSubscriptionTopics, MaxClientTopics, MaxTopics int
	// JobTypes are the limits for job types.
	JobTypes jobs.TypeLimits

	ScalingThreshold int
	ScalingDeadline  time.Duration
	ForceTLS         bool
	NonceTTL         time.Duration
	IdempotencyTTL   time.Duration
	// IdempotencyKeys is how many keys the bus remembers of one client at most.
	IdempotencyKeys int
	// TLSCert and TLSKey name PEM files; both or neither are set.
	TLSCert, TLSKey string
	CallbackDeny    bus.DenyList
	// TrustedNetworks are networks in which clients may see how their endpoints fail.
	TrustedNetworks bus.DenyList

	CounterFlushInterval, MonitorInterval time.Duration
	// MetricService is "print", "datadog" or "none"; DatadogAgent is host:port or a unix URL.
	MetricService, DatadogAgent string
	// AppName and Env are tags for the metric service. AppName is also the source of reports and
	// traces.
	AppName, Env string
	// MetricsAddr is where the metrics are served without authentication; empty if they are not.
	MetricsAddr string
	// Profiles has profiles served there too.
	Profiles bool
	// AddressConnections is how many connections web takes from one address; 0 for a share of all.
	AddressConnections int
	Exceptions         vendors.ExceptionService
	// Tracing is whether the OTEL_ variables ask for traces. The OpenTelemetry SDK reads the
	// endpoint itself.
	Tracing bool

	// Console is "on", "read-only" or "off". ConsoleAddr is where it is served instead of the API's
	// port; empty if it is not.
	Console, ConsoleAddr string

	LogLevel slog.Level
	LogJSON  bool
}

// ConfigError is a setting that is not allowed. Its text says which values are.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// LookupEnv returns a function that looks a variable up in the environment and then in the .env
// file of the working directory. It adds the OTEL_ variables of that file to the environment,
// because the OpenTelemetry SDK reads nothing else. The error is a [ConfigError].
func LookupEnv() (lookup func(name string) string, err error) {
	lookup, _, err = readEnv()
	return lookup, err
}

// readEnv is [LookupEnv]; it also returns the .env file.
func readEnv() (lookup func(name string) string, file map[string]string, err error) {
	file, err = readEnvFile()
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	for name, value := range file {
		if _, ok := os.LookupEnv(name); !ok && strings.HasPrefix(name, "OTEL_") {
			if err := os.Setenv(name, value); err != nil {
				return nil, nil, &ConfigError{fmt.Errorf("%s of the .env file is not allowed: %w", name, err)}
			}
		}
	}
	return func(name string) string {
		if value, ok := os.LookupEnv(name); ok {
			return value
		}
		return file[name]
	}, file, nil
}

// LoadConfig reads the configuration. An empty value counts as none. The error is a [ConfigError],
// which names the variable, its value unless that may be secret, and the values that are allowed.
func LoadConfig(lookup func(name string) string) (Config, error) {
	e := &environment{lookup: lookup}
	redisVariable := e.text("REDIS_ENV_KEY", "ROUTEMASTER_REDIS_URL")
	c := Config{
		Port:    e.integer("PORT", 17890, 0, 65535),
		RootKey: e.text("ROUTEMASTER_ROOT_KEY", ""),
		Clients: e.tokens("ROUTEMASTER_CLIENTS"),

		RedisURL:       e.redisURL(redisVariable, "redis://localhost:6379/0"),
		RedisNamespace: e.namespace("ROUTEMASTER_REDIS_NAMESPACE"),
		MinReplicas:    e.integer("ROUTEMASTER_REDIS_MIN_REPLICAS", 0, 0, 100),
		Memory: bus.MemoryLimits{
			Max:     int64(e.integer("ROUTEMASTER_REDIS_MAX_MEM", 0, 0, maxMemory)),
			MinFree: int64(e.integer("ROUTEMASTER_REDIS_MIN_FREE", bus.DefaultMinFree, 0, maxMemory)),
		},

		ClientMemory: e.clientMemory("ROUTEMASTER_CLIENT_MEMORY"),

		WorkerThreads:        e.integer("ROUTEMASTER_WORKER_THREADS", 32, 1, 10_000),
		SubscriberDeliveries: e.integer("ROUTEMASTER_SUBSCRIBER_DELIVERIES", 1, 1, 10_000),
		AcquireTimeout:       e.duration("ROUTEMASTER_ACQUIRE_TIMEOUT", 5, 1, 3600, time.Second),
		ConnectTimeout:       e.duration("ROUTEMASTER_CONNECT_TIMEOUT", 2, 1, 3600, time.Second),
		Timeout:              e.duration("ROUTEMASTER_TIMEOUT", 20, 1, 3600, time.Second),
		VerifyTLS:            e.boolean("ROUTEMASTER_SSL_VERIFY", true),
		HealRate:             e.integer("ROUTEMASTER_HP_HEAL_RATE", 1, 0, bus.MaxHealth),
		DamageRate:           e.integer("ROUTEMASTER_HP_DAMAGE_RATE", -2, -bus.MaxHealth, 0),
		MaxBackoff:           e.duration("MAX_BACKOFF_MS", 60_000, 100, 86_400_000, time.Millisecond),
		AttemptsKept:         e.integer("ROUTEMASTER_ATTEMPTS_KEPT", 20, 0, 1000),
		AttemptExcerpt:       e.integer("ROUTEMASTER_ATTEMPT_EXCERPT", 256, 0, 4096),

		JobThreads:     e.integer("ROUTEMASTER_JOB_THREADS", 32, 0, 10_000),
		DownstreamURL:  e.downstreamURL("DOWNSTREAM_URL"),
		DownstreamAuth: e.text("DOWNSTREAM_WORKER_AUTH", ""),

		Machines:       e.list("ROUTEMASTER_MACHINES"),
		MachineThreads: e.integer("ROUTEMASTER_MACHINE_THREADS", 32, 0, 10_000),

		Secrets: e.keyring("ROUTEMASTER_SECRETS_KEY"),

		MaxEventData: e.integer("ROUTEMASTER_MAX_EVENT_DATA", 64, 0, 65536),

		MaxSubscriptionTopics: e.integer("ROUTEMASTER_MAX_SUBSCRIPTION_TOPICS", 1000, 1, 1_000_000),
		MaxClientTopics:       e.integer("ROUTEMASTER_MAX_CLIENT_TOPICS", 1000, 1, 1_000_000),
		MaxTopics:             e.integer("ROUTEMASTER_MAX_TOPICS", 100_000, 1, 1_000_000),

		JobTypes: jobs.TypeLimits{
			Client: e.integer("ROUTEMASTER_MAX_CLIENT_JOB_TYPES", jobs.DefaultTypeLimits.Client, 1, 10_000),
			Bus:    e.integer("ROUTEMASTER_MAX_JOB_TYPES", jobs.DefaultTypeLimits.Bus, 1, 10_000),
		},

		ScalingThreshold: e.integer("ROUTEMASTER_SCALING_THRESHOLD", 100, 1, 1_000_000_000),
		ScalingDeadline:  e.duration("ROUTEMASTER_SCALING_DEADLINE", 1000, 0, 86_400_000, time.Millisecond),
		ForceTLS:         e.boolean("FORCE_SSL", true),
		NonceTTL:         e.duration("ROUTEMASTER_NONCE_TTL", 300, 1, 86_400, time.Second),
		IdempotencyTTL: e.duration("ROUTEMASTER_IDEMPOTENCY_TTL", int(bus.DefaultIdempotencyTTL/time.Second),
			int(bus.MinIdempotencyTTL/time.Second), int(bus.MaxIdempotencyTTL/time.Second), time.Second),
		IdempotencyKeys:    e.integer("ROUTEMASTER_IDEMPOTENCY_MAX", bus.DefaultIdempotencyKeys, 8, 1_000_000_000),
		TLSCert:            e.text("ROUTEMASTER_TLS_CERT", ""),
		TLSKey:             e.text("ROUTEMASTER_TLS_KEY", ""),
		AddressConnections: e.integer("ROUTEMASTER_ADDRESS_CONNECTIONS", 0, 0, 1_000_000),
		CallbackDeny:       e.denyList("ROUTEMASTER_CALLBACK_DENY", bus.DefaultDeny),
		TrustedNetworks:    e.denyList("ROUTEMASTER_TRUSTED_NETWORKS", "none"),

		CounterFlushInterval: e.duration("ROUTEMASTER_COUNTER_FLUSH_INTERVAL", 5, 1, 3600, time.Second),
		MonitorInterval:      e.duration("ROUTEMASTER_MONITOR_INTERVAL", 10, 1, 3600, time.Second),
		MetricService:        e.choice("METRIC_COLLECTION_SERVICE", "none", "print", "datadog", "none"),
		DatadogAgent:         e.datadogAgent(),
		AppName:              e.text("ROUTEMASTER_APP_NAME", "routemaster"),
		Env:                  e.text("RACK_ENV", "production"),
		MetricsAddr:          e.address("ROUTEMASTER_METRICS_ADDR"),
		Profiles:             e.boolean("ROUTEMASTER_PPROF", false),
		Exceptions:           e.exceptions(),
		Tracing:              e.tracing(),

		Console:     e.choice("ROUTEMASTER_CONSOLE", "on", "on", "read-only", "off"),
		ConsoleAddr: e.address("ROUTEMASTER_CONSOLE_ADDR"),

		LogLevel: logLevels[e.choice("ROUTEMASTER_LOG_LEVEL", "INFO", "DEBUG", "INFO", "WARN", "ERROR")],
		LogJSON:  e.choice("ROUTEMASTER_LOG_FORMAT", "text", "text", "json") == "json",
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		e.refuse("ROUTEMASTER_TLS_CERT", strconv.Quote(c.TLSCert), "set together with ROUTEMASTER_TLS_KEY, or not at all")
	}
	if c.Memory.Max > 0 && 2*c.Memory.MinFree >= c.Memory.Max {
		e.refuse("ROUTEMASTER_REDIS_MIN_FREE", strconv.FormatInt(c.Memory.MinFree, 10),
			fmt.Sprintf("less than half of ROUTEMASTER_REDIS_MAX_MEM=%d", c.Memory.Max))
	}
	if e.err != nil {
		return c, &ConfigError{e.err}
	}
	return c, nil
}

// maxMemory is 1 PiB, more bytes than any Redis has.
const maxMemory = 1 << 50

var logLevels = map[string]slog.Level{
	"DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError,
}
