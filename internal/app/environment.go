package app

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/signature"
	"routemaster/internal/telemetry/vendors"
)

// environment reads variables. Each method reads one, or several that belong together, and returns
// the fallback if there is none. An error is kept, the first one only. No library reads them: none
// says a variable's name, its value and the allowed ones in one line.
type environment struct {
	lookup func(name string) string
	err    error
}

// refuse keeps the error of a variable whose value is not allowed.
func (e *environment) refuse(name, value, allowed string) {
	e.fail(fmt.Errorf("%s=%s is not allowed: it must be %s", name, value, allowed))
}

// fail keeps the first error.
func (e *environment) fail(err error) {
	e.err = cmp.Or(e.err, err)
}

// notShown stands for a value that may contain a secret.
const notShown = "(not shown)"

func (e *environment) text(name, fallback string) string {
	if value := e.lookup(name); value != "" {
		return value
	}
	return fallback
}

// list reads words with commas between them.
func (e *environment) list(name string) []string {
	if value := e.text(name, ""); value != "" {
		return strings.Split(value, ",")
	}
	return nil
}

func (e *environment) integer(name string, fallback, lowest, highest int) int {
	value := e.lookup(name)
	if value == "" {
		return fallback
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < lowest || n > highest {
		e.refuse(name, strconv.Quote(value), fmt.Sprintf("an integer from %d to %d", lowest, highest))
		return fallback
	}
	return n
}

func (e *environment) duration(name string, fallback, lowest, highest int, unit time.Duration) time.Duration {
	return time.Duration(e.integer(name, fallback, lowest, highest)) * unit
}

func (e *environment) choice(name, fallback string, allowed ...string) string {
	value := e.text(name, fallback)
	for _, choice := range allowed {
		if strings.EqualFold(value, choice) {
			return choice
		}
	}
	e.refuse(name, strconv.Quote(value), "one of "+strings.Join(allowed, ", "))
	return fallback
}

func (e *environment) boolean(name string, fallback bool) bool {
	yes, no := []string{"yes", "true", "on", "1"}, []string{"no", "false", "off", "0"}
	if e.lookup(name) == "" {
		return fallback
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
			e.refuse(name, notShown, fmt.Sprintf("comma-separated tokens; token %d is invalid: %v", i+1, err))
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func (e *environment) redisURL(name, fallback string) string {
	value := e.text(name, fallback)
	if err := rdb.CheckURL(value); err != nil {
		e.refuse(name, notShown, "like redis://user:password@host:6379/0, rediss://host:6379/0, "+
			"unix:///path?db=0, redis+sentinel://host:26379,host:26379/master/0 or redis+cluster://host:6379,host:6379")
	}
	return value
}

// namespaces excludes characters with a meaning in the patterns of SCAN or in the shell.
var namespaces = regexp.MustCompile(`\A[A-Za-z0-9:._-]{0,64}\z`)

func (e *environment) namespace(name string) string {
	value := e.lookup(name)
	if !namespaces.MatchString(value) {
		e.refuse(name, strconv.Quote(value), "at most 64 letters, digits and : . _ -")
	}
	return value
}

func (e *environment) denyList(name, fallback string) bus.DenyList {
	value := e.text(name, fallback)
	list, err := bus.ParseDenyList(value)
	if err != nil {
		e.refuse(name, strconv.Quote(value), fmt.Sprintf(
			"none, or a comma-separated list of loopback, link-local, metadata, private and CIDRs; %v", err))
	}
	return list
}

// sizeUnits are the suffixes of sizes.
var sizeUnits = map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}

// size reads a number of bytes, such as 1000000 or 512MB.
func size(text string) (bytes int64, ok bool) {
	unit := int64(1)
	at := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if at > 0 {
		unit = sizeUnits[strings.ToUpper(strings.TrimSpace(text[at:]))]
		text = text[:at]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || unit == 0 || n > maxMemory/unit {
		return 0, false
	}
	return n * unit, true
}

// clientMemory reads how much memory clients' data may take: a size for each, and sizes by name.
func (e *environment) clientMemory(name string) (c account.Clients) {
	for _, word := range e.list(name) {
		client, text, named := strings.Cut(strings.TrimSpace(word), "=")
		if !named {
			text = client
		}
		bytes, ok := size(text)
		switch client := bus.ClientName(client); {
		case named && ok && (client == bus.RootName || client.Validate() == nil) && c.Named[client] == 0:
			if c.Named == nil {
				c.Named = map[bus.ClientName]int64{}
			}
			c.Named[client] = bytes
		case !named && ok && c.Each == 0:
			c.Each = bytes
		default:
			e.refuse(name, strconv.Quote(e.lookup(name)),
				"a size for each client, such as 200MB, and sizes by name, such as shop=1GB, with commas between them, each once")
		}
	}
	return c
}

// downstreamURL reads a URL to which paths are appended, and returns it without a slash at its end.
func (e *environment) downstreamURL(name string) string {
	value := strings.TrimRight(e.lookup(name), "/")
	u, err := url.Parse(value)
	isHTTP := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Opaque == ""
	if value != "" && (!isHTTP || u.User != nil || strings.ContainsAny(value, "?#")) {
		e.refuse(name, notShown, "like https://jobs.example.com/path, or http://…, without user name, query and fragment")
	}
	return value
}

func (e *environment) keyring(name string) signature.Keyring {
	keys, err := signature.ParseKeyring(e.lookup(name))
	if err != nil {
		e.refuse(name, notShown, fmt.Sprintf("comma-separated keys as openssl rand -base64 32 makes them; %v", err))
	}
	return keys
}

func (e *environment) exceptions() vendors.ExceptionService {
	const variable = "EXCEPTION_SERVICE_URL"
	service := vendors.ExceptionService{
		Name: e.choice("EXCEPTION_SERVICE", vendors.Print, vendors.ExceptionServices...),
		URL:  e.lookup(variable),
	}
	err := service.Check()
	if err == nil {
		return service
	}
	form := err.Error()
	if key := exceptionKeys[service.Name]; key != "" && e.lookup(key) != "" {
		form += "; put in the key that is in " + key + ", which is not read by itself"
	}
	if service.URL == "" {
		e.fail(fmt.Errorf("%s is not set, and EXCEPTION_SERVICE=%s needs it: it must be %s", variable, service.Name, form))
	} else {
		e.refuse(variable, notShown, form)
	}
	return service
}

// exceptionKeys are the variables in which the Ruby original has the key of a service.
var exceptionKeys = map[string]string{
	vendors.Honeybadger: "HONEYBADGER_API_KEY", vendors.NewRelic: "NEW_RELIC_LICENSE_KEY",
}

// tracing reports whether the variables that OpenTelemetry specifies ask for traces: by naming an
// exporter or an endpoint.
func (e *environment) tracing() bool {
	if e.boolean("OTEL_SDK_DISABLED", false) {
		return false
	}
	endpoint := e.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", e.lookup("OTEL_EXPORTER_OTLP_ENDPOINT"))
	fallback := "none"
	if endpoint != "" {
		fallback = "otlp"
	}
	if e.choice("OTEL_TRACES_EXPORTER", fallback, "otlp", "none") == "none" {
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

// datadogAgent reads the variables that Datadog's own clients read. The URL takes precedence.
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
