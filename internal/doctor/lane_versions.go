package doctor

import (
	"fmt"
	"strings"

	"routemaster/internal/bus"
)

// findLaneVersions compares the version of a subscriber's lanes that publishes go by with that of
// the options.
func findLaneVersions(e *Examination) {
	tokens := map[string]bool{}
	for token := range e.Elements[keys.Plans()] {
		tokens[token] = !strings.ContainsAny(token[:min(1, len(token))], "/?") // these are of a topic
	}
	for token, options := range e.Each(keys.Options("")) {
		tokens[token] = tokens[token] || options["generation"] != ""
	}
	for token, has := range tokens {
		if has {
			findVersion(e, token)
		}
	}
}

func findVersion(e *Examination, token string) {
	plans, options := e.Keys.Plans(), keys.Options(bus.Token(token))
	said, must := e.Elements[keys.Plans()][token], e.Elements[options]["generation"]
	checks := []Check{Is(must, "HGET", e.Full(options), "generation")}
	if !e.IsSubscriber(token) { // then the options go
		must, checks = "", isNoSubscriber(e, token)
	}
	if said == must && e.Has(keys.Plans(), token) == (must != "") {
		return
	}
	set := Command{"HSET", plans, token, must}
	if must == "" {
		set = Command{"HDEL", plans, token}
	}
	e.Add(plans, fmt.Sprintf("has lanes %q for %s, must be %q", said, e.Name(token), must), "set right",
		append(checks, Is(said, "HGET", plans, token)), set)
}
