package doctor

import (
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// What an earlier version of the bus had under other names, after the namespace.
const (
	oldTraceparents = "batches:origins:"
	oldLane         = "batches:line:"
)

// layout is the types of keys, and what keys with one prefix have in common.
type layout struct {
	singles  map[string]rdb.Kind // types of the keys of which there is one
	families []family            // a longer prefix before a shorter one that it begins with
}

type family struct {
	of     familyName
	prefix string
	kind   rdb.Kind
}

type familyName int

const (
	otherKeys familyName = iota
	topicKeys
	subscriberKeys
	deliveryKeys
	topicSubscribersKeys
	subscriberTopicsKeys
	currentKeys
	laneKeys
	batchKeys
	originalKeys
	pendingKeys
	oldTraceparentsKeys
	oldLaneKeys
)

// fields are those that a family's hashes may have.
var fields = map[familyName][]string{
	topicKeys:      {"publisher", "counter", "last_event"},
	subscriberKeys: {"callback", "timeout", "max_events", "uuid", "health_points", "last_attempted_at"},
	deliveryKeys:   {"name", "events_sent", "throttled_until", "refusals", "refused_since"},
}

// oldFields of subscribers are in their deliveries today, or gone.
var oldFields = []string{"events_sent", "throttled_until", "abreast"}

const text rdb.Kind = "string"

func layoutOf(k store.Keys, jobs queue.Keys) layout {
	l := layout{
		singles: map[string]rdb.Kind{
			k.Topics(): rdb.Set, k.Subscribers(): rdb.Set, k.BatchesIndex(): rdb.SortedSet,
			k.Counters(): rdb.Hash, k.Monitored(): rdb.Hash, k.Owners(): rdb.Hash, k.Owned(): rdb.Hash,
			k.Unused(): rdb.Hash, k.Tokens(): rdb.Hash, k.Rotations(): rdb.Hash, k.BatchGauge(): rdb.Hash,
			k.EventGauge(): rdb.Hash, k.Migration(): text, jobs.Workers(): rdb.Hash, jobs.MaxInFlight(): rdb.Hash,
		},
		families: []family{
			{batchKeys, k.Batch(""), rdb.List},
			{topicKeys, k.Topic(""), rdb.Hash}, {subscriberKeys, k.Subscriber(""), rdb.Hash},
			{deliveryKeys, k.Delivery(""), rdb.Hash},
			{topicSubscribersKeys, k.TopicSubscribers(""), rdb.Set},
			{subscriberTopicsKeys, k.SubscriberTopics(""), rdb.Set},
			{currentKeys, k.Current(""), rdb.Set}, {laneKeys, jobs.Lane(bus.JobBatch, ""), rdb.SortedSet},
			{otherKeys, k.Failed(""), rdb.SortedSet}, {otherKeys, k.Traceparents(""), rdb.List},
			{oldTraceparentsKeys, k.Namespace + oldTraceparents, rdb.List},
			{oldLaneKeys, k.Namespace + oldLane, rdb.SortedSet},
			{pendingKeys, k.Namespace + "jobs:pending:", rdb.List},
			{otherKeys, k.Namespace + "idempotency:", rdb.Hash},
		},
	}
	for _, q := range bus.Queues {
		l.singles[jobs.JobsIndex(q)], l.singles[jobs.PendingIndex(q)] = rdb.Set, rdb.Set
		l.singles[jobs.Scheduled(q)], l.singles[jobs.Instant(q)] = rdb.SortedSet, rdb.List
	}
	return l
}

// isUID reports whether a text can be the UID of a batch. By that the keys of the Ruby original's
// batches differ from our other ones that begin with "batches:".
func isUID(text string) bool { return len(text) == bus.UIDLen && bus.IsURLSafe(text) }

// isWorker reports whether what follows "jobs:pending:" is a queue and a worker.
func isWorker(text string) bool {
	queue, worker, _ := strings.Cut(text, ":")
	return slices.Contains(bus.Queues[:], bus.Queue(queue)) && worker != "" && bus.IsURLSafe(worker)
}

// family returns the family of a key, with the type by the layout, which is empty if that does not
// know the key, and what follows the family's prefix.
func (l layout) family(k store.Keys, key string) (f family, rest string) {
	if kind := l.singles[key]; kind != "" {
		return family{otherKeys, key, kind}, ""
	}
	for _, f := range l.families {
		rest, ok := strings.CutPrefix(key, f.prefix)
		if ok && (f.of != batchKeys || isUID(rest)) && (f.of != pendingKeys || isWorker(rest)) {
			return f, rest
		}
	}
	if bid, ok := strings.CutPrefix(key, k.Original("")); ok && isUID(bid) {
		return family{originalKeys, k.Original(""), rdb.List}, bid
	}
	return family{}, ""
}
