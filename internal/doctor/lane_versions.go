package doctor

import (
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// findLaneVersions looks whether publishes go by a version of a subscriber's lanes: they must if it
// has several, and only then.
func findLaneVersions(e *Examination) {
	tokens := map[string]bool{}
	for token := range e.Elements[keys.Plans()] {
		tokens[token] = !strings.ContainsAny(token[:min(1, len(token))], "/?") // these are of a topic
	}
	for token, options := range e.Each(keys.Options("")) {
		tokens[token] = tokens[token] || rdb.Integer(options["lanes"], 1) > 1
	}
	for token, has := range tokens {
		if has {
			findVersion(e, token)
		}
	}
}

func findVersion(e *Examination, token string) {
	plans, options := e.Keys.Plans(), keys.Options(bus.Token(token))
	version, lanes := e.Elements[keys.Plans()][token], e.Elements[options]["lanes"]
	has, checks := rdb.Integer(lanes, 1) > 1, []Check{Is(lanes, "HGET", e.Full(options), "lanes")}
	if !e.IsSubscriber(token) { // then the options go
		has, checks = false, isNoSubscriber(e, token)
	}
	checks = append(checks, Is(version, "HGET", plans, token))
	switch {
	case has && version == "":
		e.Add(plans, "has no version of the lanes of "+e.Name(token), "given one", checks, Command{"HSET", plans, token, bus.NewOptionsVersion()})
	case !has && e.Has(keys.Plans(), token):
		e.mustNotList(keys.Plans(), "has a version of the lanes of "+e.Name(token)+", which has one", token, checks...)
	}
}
