package doctor

import (
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// The keys without a namespace, as findings show them.
var (
	keys = store.Keys{}
	jobs = queue.Keys{}
)

// What an earlier version of the bus had under other names.
const (
	oldTraceparents = "batches:origins:"
	oldLane         = "batches:line:"
)

// The fields of hashes. The old ones of subscribers are in their deliveries today, or gone.
var (
	topicFields      = []string{"publisher", "counter", "last_event"}
	subscriberFields = []string{"callback", "timeout", "max_events", "uuid", "health_points", "last_attempted_at"}
	deliveryFields   = []string{"name", "events_sent", "throttled_until", "refusals", "refused_since", "plan", "paused_until", "paced_until", "test"}
	oldFields        = []string{"events_sent", "throttled_until", "abreast"}
)

// singles are the keys of which there is one, with their types.
var singles = func() map[string]rdb.Kind {
	singles := map[string]rdb.Kind{
		keys.Topics(): rdb.Set, keys.Subscribers(): rdb.Set, keys.BatchesIndex(): rdb.SortedSet,
		keys.Counters(): rdb.Hash, keys.Monitored(): rdb.Hash, keys.Owners(): rdb.Hash,
		keys.Owned(): rdb.Hash, keys.Unused(): rdb.Hash, keys.Tokens(): rdb.Hash,
		keys.Rotations(): rdb.Hash, keys.BatchGauge(): rdb.Hash, keys.EventGauge(): rdb.Hash,
		keys.DeadLetterEvents(): rdb.Hash, keys.DeadLetterBytes(): rdb.Hash,
		keys.Migration(): rdb.String, jobs.Workers(): rdb.Hash, jobs.MaxInFlight(): rdb.Hash,
	}
	for _, q := range bus.Queues {
		singles[jobs.JobsIndex(q)], singles[jobs.PendingIndex(q)] = rdb.Set, rdb.Set
		singles[jobs.Scheduled(q)], singles[jobs.Instant(q)] = rdb.SortedSet, rdb.List
	}
	return singles
}()

// family is what keys that begin alike have in common. A scan reads their elements, of lists a part
// and the length, or only the types of those that are unread.
type family struct {
	prefix string
	kind   rdb.Kind
	has    func(rest string) bool // nil if anything may follow the prefix
	token  bool                   // a token follows the prefix
	single bool                   // there is one key
	unread bool
	fields []string // of a hash: those that the layout knows

	from, to int64 // the part of a list, which goes to the function
	list     func(s *scan, rest string, part []string, length int64)
}

var families = []family{
	{prefix: keys.Batch(""), kind: rdb.List, has: bus.IsUID, list: (*scan).takeBatch, to: store.BatchHeader - 1},
	// By that these differ from our other keys that begin with "batches:".
	{prefix: keys.Original(""), kind: rdb.List, has: bus.IsUID, list: (*scan).takeOriginal},
	{prefix: "jobs:pending:", kind: rdb.List, has: isWorker, list: (*scan).takePending, from: -100, to: -1},
	{prefix: keys.Topic(""), kind: rdb.Hash, fields: topicFields},
	{prefix: keys.Subscriber(""), kind: rdb.Hash, token: true, fields: slices.Concat(subscriberFields, oldFields)},
	{prefix: keys.Delivery(""), kind: rdb.Hash, token: true, fields: deliveryFields},
	{prefix: keys.TopicSubscribers(""), kind: rdb.Set},
	{prefix: keys.SubscriberTopics(""), kind: rdb.Set, token: true},
	{prefix: keys.Current(""), kind: rdb.Set, token: true},
	{prefix: jobs.Lane(bus.JobBatch, ""), kind: rdb.SortedSet, token: true},
	{prefix: keys.Failed(""), kind: rdb.SortedSet, token: true, unread: true},
	{prefix: keys.Traceparents(""), kind: rdb.List, unread: true},
	{prefix: keys.BatchState(""), kind: rdb.Hash, unread: true},
	{prefix: keys.Options(""), kind: rdb.Hash, token: true, unread: true},
	{prefix: keys.Attempts(""), kind: rdb.List, token: true, unread: true},
	{prefix: keys.DeadLetters(""), kind: rdb.SortedSet, token: true, unread: true},
	{prefix: keys.DeadLetter(""), kind: rdb.List, has: bus.IsUID, unread: true},
	{prefix: keys.DeadLetterCause(""), kind: rdb.Hash, unread: true},
	{prefix: "idempotency:", kind: rdb.Hash, unread: true},
	{prefix: oldTraceparents, kind: rdb.List, list: (*scan).takeOldTraceparents},
	{prefix: oldLane, kind: rdb.SortedSet, token: true},
}

// isWorker reports whether what follows "jobs:pending:" is a queue and a worker.
func isWorker(text string) bool {
	queue, worker, _ := strings.Cut(text, ":")
	return slices.Contains(bus.Queues[:], bus.Queue(queue)) && worker != "" && bus.IsURLSafe(worker)
}

// familyOf returns the family of a key without its namespace, and what follows the prefix of that.
// The type is empty if the layout does not know the key.
func familyOf(key string) (f family, rest string) {
	if kind := singles[key]; kind != "" {
		return family{kind: kind, single: true}, ""
	}
	for _, f := range families {
		if rest, ok := strings.CutPrefix(key, f.prefix); ok && (f.has == nil || f.has(rest)) {
			return f, rest
		}
	}
	return family{}, ""
}
