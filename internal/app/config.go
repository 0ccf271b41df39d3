package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joho/godotenv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/telemetry/exceptions"
)

// Config is everything the environment decides. docs/configuration.md has the tables.
type Config struct {
	Port    int
	RootKey string
	Clients []bus.Token

	RedisURL       string
	RedisNamespace string
	MinReplicas    int
	Memory         bus.MemoryLimits

	WorkerThreads        int
	SubscriberDeliveries int
	AcquireTimeout       time.Duration
	ConnectTimeout       time.Duration
	Timeout              time.Duration
	VerifyTLS            bool
	HealRate, DamageRate int
	MaxBackoff           time.Duration

	MaxEventData int
	// The most topics of a subscription, of a client, and of the bus.
	MaxSubscriptionTopics, MaxClientTopics, MaxTopics int

	ScalingThreshold int
	ScalingDeadline  time.Duration
	ForceTLS         bool
	NonceTTL         time.Duration
	IdempotencyTTL   time.Duration
	// IdempotencyKeys is the most that one client may have.
	IdempotencyKeys int
	// TLSCert and TLSKey name PEM files; both or neither are set.
	TLSCert, TLSKey string
	CallbackDeny    bus.DenyList

	CounterFlushInterval, MonitorInterval time.Duration
	// MetricService is "print", "datadog" or "none"; DatadogAgent is host:port or a unix URL.
	MetricService, DatadogAgent string
	// AppName and Env are tags for the metric service; AppName is also what reports and traces come from.
	AppName, Env string
	// MetricsAddr is where the metrics are served without authentication; empty for nowhere.
	MetricsAddr string
	Exceptions  exceptions.Service
	// Tracing is whether the OTEL_ variables ask for traces. The OpenTelemetry SDK reads by itself where they go.
	Tracing bool

	LogLevel slog.Level
	LogJSON  bool
}

// ConfigError is a setting that is not allowed. Its text says what is.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// LookupEnv returns the environment, and behind it the .env file of the working directory, whose OTEL_ variables it
// adds to the environment. The error is a [ConfigError].
func LookupEnv() (lookup func(name string) string, err error) {
	lookup, _, err = readEnv()
	return lookup, err
}

// readEnv is [LookupEnv]; it returns the .env file besides.
func readEnv() (lookup func(name string) string, file map[string]string, err error) {
	file, err = godotenv.Read(".env")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// The error would show the file, and with it its secrets.
		return nil, nil, &ConfigError{errors.New("the .env file cannot be read: it must have lines like NAME=value")}
	}
	for name, value := range file { // the OpenTelemetry SDK reads the environment alone
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

// LoadConfig reads the configuration. The error is a [ConfigError]; it names the variable, its value unless it is a secret, and
// what is allowed. An empty value is as good as none.
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

		WorkerThreads:        e.integer("ROUTEMASTER_WORKER_THREADS", 32, 1, 10_000),
		SubscriberDeliveries: e.integer("ROUTEMASTER_SUBSCRIBER_DELIVERIES", 1, 1, 10_000),
		AcquireTimeout:       e.duration("ROUTEMASTER_ACQUIRE_TIMEOUT", 5, 1, 3600, time.Second),
		ConnectTimeout:       e.duration("ROUTEMASTER_CONNECT_TIMEOUT", 2, 1, 3600, time.Second),
		Timeout:              e.duration("ROUTEMASTER_TIMEOUT", 20, 1, 3600, time.Second),
		VerifyTLS:            e.boolean("ROUTEMASTER_SSL_VERIFY", true),
		HealRate:             e.integer("ROUTEMASTER_HP_HEAL_RATE", 1, 0, bus.MaxHealth),
		DamageRate:           e.integer("ROUTEMASTER_HP_DAMAGE_RATE", -2, -bus.MaxHealth, 0),
		MaxBackoff:           e.duration("MAX_BACKOFF_MS", 60_000, 100, 86_400_000, time.Millisecond),

		MaxEventData: e.integer("ROUTEMASTER_MAX_EVENT_DATA", 64, 0, 65536),

		MaxSubscriptionTopics: e.integer("ROUTEMASTER_MAX_SUBSCRIPTION_TOPICS", 1000, 1, 1_000_000),
		MaxClientTopics:       e.integer("ROUTEMASTER_MAX_CLIENT_TOPICS", 1000, 1, 1_000_000),
		MaxTopics:             e.integer("ROUTEMASTER_MAX_TOPICS", 100_000, 1, 1_000_000),

		ScalingThreshold: e.integer("ROUTEMASTER_SCALING_THRESHOLD", 100, 1, 1_000_000_000),
		ScalingDeadline:  e.duration("ROUTEMASTER_SCALING_DEADLINE", 1000, 0, 86_400_000, time.Millisecond),
		ForceTLS:         e.boolean("FORCE_SSL", true),
		NonceTTL:         e.duration("ROUTEMASTER_NONCE_TTL", 300, 1, 86_400, time.Second),
		IdempotencyTTL: e.duration("ROUTEMASTER_IDEMPOTENCY_TTL", int(bus.DefaultIdempotencyTTL/time.Second),
			int(bus.MinIdempotencyTTL/time.Second), int(bus.MaxIdempotencyTTL/time.Second), time.Second),
		IdempotencyKeys: e.integer("ROUTEMASTER_IDEMPOTENCY_MAX", bus.DefaultIdempotencyKeys, 8, 1_000_000_000),
		TLSCert:         e.text("ROUTEMASTER_TLS_CERT", ""),
		TLSKey:          e.text("ROUTEMASTER_TLS_KEY", ""),
		CallbackDeny:    e.denyList("ROUTEMASTER_CALLBACK_DENY", bus.DefaultDeny),

		CounterFlushInterval: e.duration("ROUTEMASTER_COUNTER_FLUSH_INTERVAL", 5, 1, 3600, time.Second),
		MonitorInterval:      e.duration("ROUTEMASTER_MONITOR_INTERVAL", 10, 1, 3600, time.Second),
		MetricService:        e.choice("METRIC_COLLECTION_SERVICE", "print", "print", "datadog", "none"),
		DatadogAgent:         e.datadogAgent(),
		AppName:              e.text("ROUTEMASTER_APP_NAME", "routemaster"),
		Env:                  e.text("RACK_ENV", "production"),
		MetricsAddr:          e.address("ROUTEMASTER_METRICS_ADDR"),
		Exceptions:           e.exceptions(),
		Tracing:              e.tracing(),

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

// maxMemory is more bytes than any Redis has: 1 PiB.
const maxMemory = 1 << 50

var logLevels = map[string]slog.Level{
	"DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError,
}

// environment reads variables, and keeps the first error.
type environment struct {
	lookup func(name string) string
	err    error
}

func (e *environment) refuse(name, value, allowed string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s=%s is not allowed: it must be %s", name, value, allowed)
	}
}

// secret stands for a value that must not be shown.
const secret = "(not shown)"

func (e *environment) text(name, otherwise string) string {
	if value := e.lookup(name); value != "" {
		return value
	}
	return otherwise
}

func (e *environment) integer(name string, otherwise, least, most int) int {
	value := e.lookup(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		e.refuse(name, strconv.Quote(value), fmt.Sprintf("an integer from %d to %d", least, most))
		return otherwise
	}
	return n
}

func (e *environment) duration(name string, otherwise, least, most int, unit time.Duration) time.Duration {
	return time.Duration(e.integer(name, otherwise, least, most)) * unit
}

func (e *environment) choice(name, otherwise string, allowed ...string) string {
	value := e.text(name, otherwise)
	for _, choice := range allowed {
		if strings.EqualFold(value, choice) {
			return choice
		}
	}
	e.refuse(name, strconv.Quote(value), "one of "+strings.Join(allowed, ", "))
	return otherwise
}

func (e *environment) boolean(name string, otherwise bool) bool {
	yes, no := []string{"yes", "true", "on", "1"}, []string{"no", "false", "off", "0"}
	if e.lookup(name) == "" {
		return otherwise
	}
	return slices.Contains(yes, e.choice(name, yes[0], append(yes, no...)...))
}

func (e *environment) tokens(name string) (tokens []bus.Token) {
	for i, value := range strings.Split(e.lookup(name), ",") {
		token := bus.Token(strings.TrimSpace(value))
		if token == "" {
			continue
		}
		if err := token.Validate(); err != nil {
			e.refuse(name, secret, fmt.Sprintf("comma-separated tokens; token %d is none: %v", i+1, err))
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func (e *environment) redisURL(name, otherwise string) string {
	value := e.text(name, otherwise)
	if err := rdb.CheckURL(value); err != nil {
		e.refuse(name, secret, "like redis://user:password@host:6379/0, rediss://host:6379/0, unix:///path?db=0 or redis+sentinel://host:26379,host:26379/master/0")
	}
	return value
}

// namespaces leaves out what SCAN's patterns and the shell give a meaning.
var namespaces = regexp.MustCompile(`\A[A-Za-z0-9:._-]{0,64}\z`)

func (e *environment) namespace(name string) string {
	value := e.lookup(name)
	if !namespaces.MatchString(value) {
		e.refuse(name, strconv.Quote(value), "at most 64 letters, digits and : . _ -")
	}
	return value
}

func (e *environment) denyList(name, otherwise string) bus.DenyList {
	value := e.text(name, otherwise)
	list, err := bus.ParseDenyList(value)
	if err != nil {
		e.refuse(name, strconv.Quote(value), fmt.Sprintf("none, or a comma-separated list of loopback, link-local, metadata, private and CIDRs; %v", err))
	}
	return list
}

func (e *environment) exceptions() exceptions.Service {
	const variable = "EXCEPTION_SERVICE_URL"
	service := exceptions.Service{
		Name: e.choice("EXCEPTION_SERVICE", exceptions.Print, exceptions.Services...),
		URL:  e.lookup(variable),
	}
	if err := service.Check(); err != nil {
		e.refuse(variable, secret, err.Error())
	}
	return service
}

// tracing reports whether traces are asked for, by the variables that OpenTelemetry specifies: by naming an exporter,
// or where it sends to.
func (e *environment) tracing() bool {
	if e.boolean("OTEL_SDK_DISABLED", false) {
		return false
	}
	endpoint := e.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", e.lookup("OTEL_EXPORTER_OTLP_ENDPOINT"))
	otherwise := "none"
	if endpoint != "" {
		otherwise = "otlp"
	}
	if e.choice("OTEL_TRACES_EXPORTER", otherwise, "otlp", "none") == "none" {
		return false
	}
	const protocol = "http/protobuf"
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		e.choice(name, protocol, protocol)
	}
	return true
}

func (e *environment) address(name string) string {
	value := e.lookup(name)
	if _, port, err := net.SplitHostPort(value); value != "" && (err != nil || !isPort(port)) {
		e.refuse(name, strconv.Quote(value), "host:port, like 127.0.0.1:9090, or :9090 for all addresses of this host")
	}
	return value
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// datadogAgent reads the variables that Datadog's own clients read, the URL first.
func (e *environment) datadogAgent() string {
	const variable, port = "DD_DOGSTATSD_URL", 8125
	host := net.JoinHostPort(e.text("DD_AGENT_HOST", "localhost"), strconv.Itoa(e.integer("DD_DOGSTATSD_PORT", port, 1, 65535)))
	value := e.lookup(variable)
	u, err := url.Parse(value)
	switch {
	case value == "":
		return host
	case err == nil && strings.HasPrefix(u.Scheme, "unix") && u.Path != "":
		return value
	case err == nil && u.Scheme == "udp" && u.Hostname() != "":
		return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), strconv.Itoa(port)))
	}
	e.refuse(variable, strconv.Quote(value), "like udp://host:8125 or unix:///path")
	return host
}
