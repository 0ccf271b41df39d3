package app

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"routemaster/internal/bus"
)

// variablePrefix begins the names of most settings.
const variablePrefix = "ROUTEMASTER_"

// commandVariables are read by rtm only.
var commandVariables = []string{"ROUTEMASTER_BUS", "ROUTEMASTER_TOKEN"}

// knownVariables are the names of the variables that the programs read.
func knownVariables() []string {
	known := slices.Clone(commandVariables)
	_, _ = LoadConfig(func(name string) string {
		known = append(known, name)
		return ""
	})
	slices.Sort(known)
	return slices.Compact(known)
}

// unknownVariable looks like a setting, and nothing reads it.
type unknownVariable struct{ name, nearest string }

// unknownVariables finds unknown names with the prefix of settings, each with the most similar
// known name.
func unknownVariables(names []string, lookup func(name string) string) (unknown []unknownVariable) {
	known := append(knownVariables(), lookup("REDIS_ENV_KEY"))
	for _, name := range names {
		if strings.HasPrefix(name, variablePrefix) && !slices.Contains(known, name) && !isServiceLink(name, lookup(name)) {
			unknown = append(unknown, unknownVariable{name, nearest(name, known)})
		}
	}
	slices.SortFunc(unknown, func(a, b unknownVariable) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(unknown)
}

// unusedKeys are variables of the Ruby original with keys of services that it sent to by itself.
// Instead says what replaces them; if one of the variables in done is set, that has been done.
var unusedKeys = []struct {
	name, instead string
	done          []string
}{
	{"DATADOG_API_KEY", datadogInstead, datadogAgentVariables},
	{"DATADOG_APP_KEY", datadogInstead, datadogAgentVariables},
	{"HONEYBADGER_API_KEY", "EXCEPTION_SERVICE=honeybadger and EXCEPTION_SERVICE_URL=https://API_KEY@api.honeybadger.io", exceptionVariables},
	{"NEW_RELIC_LICENSE_KEY", "EXCEPTION_SERVICE=new_relic and EXCEPTION_SERVICE_URL=https://LICENSE_KEY@collector.newrelic.com", exceptionVariables},
}

const datadogInstead = "METRIC_COLLECTION_SERVICE=datadog and DD_AGENT_HOST, the host of a Datadog agent, which has the key"

var (
	datadogAgentVariables = []string{"DD_AGENT_HOST", "DD_DOGSTATSD_URL"}
	exceptionVariables    = []string{"EXCEPTION_SERVICE_URL"}
)

// warnOfUnusedKeys logs the keys for which nothing was set that is used here, without their values.
func warnOfUnusedKeys(log *slog.Logger, lookup func(name string) string) {
	isSet := func(name string) bool { return lookup(name) != "" }
	for _, key := range unusedKeys {
		if isSet(key.name) && !slices.ContainsFunc(key.done, isSet) {
			log.Warn("key not used", "variable", key.name, "instead", key.instead)
		}
	}
}

// warnOfUnknown logs the settings that nothing reads, without their values, which may be secret.
func warnOfUnknown(log *slog.Logger, lookup func(name string) string, file map[string]string) {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	for name := range file {
		names = append(names, name)
	}
	for _, v := range unknownVariables(names, lookup) {
		log.Warn("unknown setting ignored", "variable", v.name, "nearest", v.nearest)
	}
}

// serviceLinks are the variables that Kubernetes sets in every container for each service, which
// may be named routemaster.
var serviceLinks = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)\z|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?\z`)

func isServiceLink(name, value string) bool {
	return serviceLinks.MatchString(name) || strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// nearest is the known name with the smallest edit distance. Known names without the prefix are
// compared with the prefix, too.
func nearest(name string, known []string) (best string) {
	fewest := len(name) + 100
	for _, candidate := range known {
		if candidate == "" {
			continue
		}
		changes := bus.EditDistance(name, candidate)
		if !strings.HasPrefix(candidate, variablePrefix) {
			changes = min(changes, bus.EditDistance(name, variablePrefix+candidate))
		}
		if changes < fewest {
			best, fewest = candidate, changes
		}
	}
	return best
}
