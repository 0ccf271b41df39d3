package store

import (
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
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
	topicSubscribersKeys
	subscriberTopicsKeys
	currentKeys
	lineKeys
	batchKeys
	originalKeys
	pendingKeys
)

func (k Keys) layout() layout {
	jobs := queue.Keys{Namespace: k.Namespace}
	l := layout{
		singles: map[string]rdb.Kind{
			k.Topics(): rdb.Set, k.Subscribers(): rdb.Set, k.BatchesIndex(): rdb.SortedSet, k.Counters(): rdb.Hash, k.Monitored(): rdb.Hash,
			k.Owners(): rdb.Hash, k.Owned(): rdb.Hash, k.Unused(): rdb.Hash,
			k.Tokens(): rdb.Hash, k.Rotations(): rdb.Hash, k.BatchGauge(): rdb.Hash, k.EventGauge(): rdb.Hash, jobs.Workers(): rdb.Hash, jobs.MaxInFlight(): rdb.Hash, k.Migration(): "string",
		},
		families: []family{
			{batchKeys, k.Batch(""), rdb.List},
			{topicKeys, k.Topic(""), rdb.Hash}, {subscriberKeys, k.Subscriber(""), rdb.Hash},
			{topicSubscribersKeys, k.TopicSubscribers(""), rdb.Set}, {subscriberTopicsKeys, k.SubscriberTopics(""), rdb.Set},
			{currentKeys, k.Current(""), rdb.Set}, {lineKeys, jobs.Lane(bus.JobBatch, ""), rdb.SortedSet},
			{otherKeys, k.Failed(""), rdb.SortedSet}, {otherKeys, k.Delivery(""), rdb.Hash},
			{otherKeys, k.Traceparents(""), rdb.List},
			{otherKeys, jobs.JobsIndex(""), rdb.Set}, {otherKeys, jobs.Scheduled(""), rdb.SortedSet}, {otherKeys, jobs.Instant(""), rdb.List},
			{otherKeys, jobs.PendingIndex(""), rdb.Set}, {pendingKeys, k.Namespace + "jobs:pending:", rdb.List},
			{otherKeys, k.Namespace + "idempotency:", rdb.Hash},
		},
	}
	for _, q := range bus.Queues {
		l.singles[jobs.JobsIndex(q)], l.singles[jobs.Scheduled(q)] = rdb.Set, rdb.SortedSet
		l.singles[jobs.Instant(q)], l.singles[jobs.PendingIndex(q)] = rdb.List, rdb.Set
	}
	return l
}

// isUID reports whether a text can be the UID of a batch. By that the keys of the Ruby original's batches differ from our
// other ones that begin with "batches:".
func isUID(text string) bool { return len(text) == bus.UIDLen && bus.IsURLSafe(text) }

// isWorker reports whether what follows "jobs:pending:" is a queue and a worker.
func isWorker(text string) bool {
	queue, worker, _ := strings.Cut(text, ":")
	return slices.Contains(bus.Queues[:], bus.Queue(queue)) && worker != "" && bus.IsURLSafe(worker)
}

// family returns the family of a key, with the type by the layout, which is empty if that does not know the key, and
// what follows the family's prefix.
func (l layout) family(k Keys, key string) (f family, rest string) {
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
