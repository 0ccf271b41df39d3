package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// findHistories looks for histories without a topic, and for topics whose history data is
// incomplete.
func findHistories(e *Examination) {
	for field, value := range e.Elements[keys.Plans()] {
		if topic, ok := strings.CutPrefix(field, "/"); ok {
			findKept(e, bus.TopicName(topic), value)
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

// isTopic reports whether the topic exists, or a repair may create it.
func isTopic(e *Examination, topic bus.TopicName) bool {
	return e.Has(keys.Topics(), string(topic)) || e.Elements[keys.Topic(topic)] != nil
}

// scriptWeigh weighs a history. The script's header documents arguments and result.
var scriptWeigh = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "weigh"))

// maxWeighed is how many bytes one step weighs, and at most a hundred entries more.
const maxWeighed = 4 << 20

// checkHistories compares the records of histories with their entries. It runs after
// [findHistories] and its repairs.
func checkHistories(ctx context.Context, e *Examination) error {
	var doubtful []string
	for _, field := range Sorted(e.Elements[keys.Plans()]) {
		topic, ok := strings.CutPrefix(field, "/")
		if !ok || !isTopic(e, bus.TopicName(topic)) {
			continue
		}
		h, err := weigh(ctx, e, bus.TopicName(topic))
		if err != nil {
			return err
		}
		if !h.fits() {
			doubtful = append(doubtful, topic)
		}
	}
	show := func(topic string) string { return "the history of " + topic }
	return e.UntilSteady(ctx, show, doubtful, func(topic string) (bool, error) {
		h, err := weigh(ctx, e, bus.TopicName(topic))
		if err != nil || !h.whole {
			return false, err
		}
		h.add(e)
		return e.Confirm(ctx)
	})
}

// history is the data read of one history.
type history struct {
	topic bus.TopicName
	// first, size and counter are as they are stored; length is the number of entries.
	first, size, counter string
	length               int64
	// bytes is the size of the entries. It covers all of them if whole is set: no entry was removed
	// during the weighing.
	bytes int64
	whole bool
}

// last is the position of the newest entry.
func (h history) last() int64 { return rdb.Integer(h.first, 0) + h.length - 1 }

// follows reports whether the newest entry is the topic's newest event.
func (h history) follows() bool { return h.first != "" && h.last() == rdb.Integer(h.counter, 0) }

func (h history) fits() bool {
	return h.follows() && h.whole && h.size == strconv.FormatInt(h.bytes, 10)
}

// weigh reads the record of a history, and the size of its entries. A history that is missing or
// has the wrong type is reported elsewhere: weigh returns one that fits.
func weigh(ctx context.Context, e *Examination, topic bus.TopicName) (h history, err error) {
	fitting := history{topic: topic, first: "1", size: "0", counter: "0", whole: true}
	h.topic = topic
	for next := int64(0); ; {
		reply, err := e.Redis.Run(ctx, scriptWeigh, string(topic), next, maxWeighed).List()
		if err != nil {
			return h, rdb.Wrap("weigh a history", err)
		}
		if len(reply) == 0 || rdb.Text(reply[0]) == "" {
			return fitting, nil
		}
		from, to := reply[4].(int64), reply[5].(int64)
		if next == 0 {
			h.first, h.size, h.counter = rdb.Text(reply[0]), rdb.Text(reply[1]), rdb.Text(reply[2])
			h.length, next = reply[3].(int64), from
		}
		if from != next {
			return h, nil
		}
		h.bytes, next = h.bytes+reply[6].(int64), to
		if to > h.last() {
			h.whole = to == h.last()+1
			return h, nil
		}
	}
}

// add adds the mismatches.
func (h history) add(e *Examination) {
	noted, list, topic := e.Keys.HistoryLimits(h.topic), e.Keys.History(h.topic), e.Keys.Topic(h.topic)
	checks := []Check{
		Is(h.first, "HGET", noted, "first"), Is(h.size, "HGET", noted, "size"), Is(h.length, "LLEN", list),
	}
	if !h.follows() {
		counter := rdb.Integer(h.counter, 0)
		e.Add(noted, fmt.Sprintf("ends with position %d, must end with %d", h.last(), counter), "begun anew",
			append(checks, Is(h.counter, "HGET", topic, "counter")),
			Command{"UNLINK", list}, Command{"HSET", noted, "first", counter + 1, "size", 0})
		return
	}
	if !h.fits() {
		e.Add(noted, fmt.Sprintf("has size %q, must be %d", h.size, h.bytes), "set right", checks,
			Command{"HSET", noted, "size", h.bytes})
	}
}
