package doctor

import (
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// findHistories looks for histories of which a part is missing, and for those of no topic.
func findHistories(e *Examination) {
	for field, value := range e.Elements[keys.Plans()] {
		if topic, ok := strings.CutPrefix(field, "/"); ok {
			findKept(e, bus.TopicName(topic), value)
		}
	}
	limits := strings.TrimPrefix(keys.HistoryLimits(""), keys.History(""))
	for topic := range e.Each(keys.HistoryLimits("")) {
		findLeftover(e, bus.TopicName(topic), keys.HistoryLimits(bus.TopicName(topic)))
	}
	for topic := range e.Each(keys.History("")) {
		if !strings.HasPrefix(topic, limits) {
			findLeftover(e, bus.TopicName(topic), keys.History(bus.TopicName(topic)))
		}
	}
}

// largestLimit is how many events a history without limits may keep from then on.
const largestLimit = 10_000_000

// findKept looks at the history of a topic that keeps one, as the plans say with a value.
func findKept(e *Examination, topic bus.TopicName, value string) {
	plans, field, noted := e.Keys.Plans(), store.HistoryField(topic), e.Keys.HistoryLimits(topic)
	limits := e.Elements[keys.HistoryLimits(topic)]
	remove := []Command{{"HDEL", plans, field}, {"UNLINK", noted, e.Keys.History(topic)}}
	switch {
	case !isTopic(e, topic):
		e.Add(plans, "has the history of "+string(topic)+", which is no topic", "removed", []Check{
			Is(1, "HEXISTS", plans, field), Is(0, "SISMEMBER", e.Keys.Topics(), string(topic)), Is(0, "EXISTS", e.Keys.Topic(topic)),
		}, remove...)
	case limits["first"] == "":
		e.Add(plans, "has the history of "+string(topic)+", which is not there", "removed", []Check{
			Is(1, "HEXISTS", plans, field), Is(0, "HEXISTS", noted, "first"),
		}, remove...)
	case value != "1":
		e.Add(plans, "has another value than 1 for the history of "+string(topic), "set right",
			[]Check{Is(value, "HGET", plans, field), Is(1, "HEXISTS", noted, "first")},
			Command{"HSET", plans, field, 1})
	case limits["events"] == "" && limits["age"] == "" && limits["bytes"] == "":
		e.Add(noted, "has no limit", "limited to 10,000,000 events", []Check{
			Is(1, "HEXISTS", plans, field), Is(0, "HEXISTS", noted, "events"),
			Is(0, "HEXISTS", noted, "age"), Is(0, "HEXISTS", noted, "bytes"),
		}, Command{"HSET", noted, "events", largestLimit})
	}
}

// isTopic reports whether there is a topic, or what may become one by a repair.
func isTopic(e *Examination, topic bus.TopicName) bool {
	return e.Has(keys.Topics(), string(topic)) || e.Elements[keys.Topic(topic)] != nil
}

// findLeftover looks at a key of a history, which a topic must keep.
func findLeftover(e *Examination, topic bus.TopicName, key string) {
	if field := store.HistoryField(topic); !e.Has(keys.Plans(), field) {
		e.mustGo(key, "is of a topic that keeps no history", Is(0, "HEXISTS", e.Keys.Plans(), field))
	}
}
