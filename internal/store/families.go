package store

import (
	"slices"
	"strings"

	"routemaster/internal/bus"
)

// layout is the types of keys, and what keys with one prefix have in common.
type layout struct {
	singles  map[string]string // types of the keys of which there is one
	families []family          // a longer prefix before a shorter one that it begins with
}

type family struct {
	of           familyName
	prefix, kind string
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

func (k keys) layout() layout {
	l := layout{
		singles: map[string]string{
			k.topics(): "set", k.subscribers(): "set", k.batchesIndex(): "zset", k.counters(): "hash", k.monitored(): "hash",
			k.owners(): "hash", k.owned(): "hash", k.unused(): "hash",
			k.tokens(): "hash", k.rotations(): "hash", k.batchGauge(): "hash", k.eventGauge(): "hash", k.workers(): "hash",
		},
		families: []family{
			{batchKeys, k.batch(""), "list"},
			{topicKeys, k.topic(""), "hash"}, {subscriberKeys, k.subscriber(""), "hash"},
			{topicSubscribersKeys, k.topicSubscribers(""), "set"}, {subscriberTopicsKeys, k.subscriberTopics(""), "set"},
			{currentKeys, k.current(""), "set"}, {lineKeys, k.line(""), "zset"},
			{otherKeys, k.failed(""), "zset"}, {otherKeys, k.delivery(""), "hash"},
			{otherKeys, k.origins(""), "list"},
			{otherKeys, k.jobsIndex(""), "set"}, {otherKeys, k.scheduled(""), "zset"}, {otherKeys, k.instant(""), "list"},
			{otherKeys, k.pendingIndex(""), "set"}, {pendingKeys, k.ns + "jobs:pending:", "list"},
			{otherKeys, k.ns + "idempotency:", "hash"},
		},
	}
	for _, q := range bus.Queues {
		l.singles[k.jobsIndex(q)], l.singles[k.scheduled(q)] = "set", "zset"
		l.singles[k.instant(q)], l.singles[k.pendingIndex(q)] = "list", "set"
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
func (l layout) family(k keys, key string) (f family, rest string) {
	if kind := l.singles[key]; kind != "" {
		return family{otherKeys, key, kind}, ""
	}
	for _, f := range l.families {
		rest, ok := strings.CutPrefix(key, f.prefix)
		if ok && (f.of != batchKeys || isUID(rest)) && (f.of != pendingKeys || isWorker(rest)) {
			return f, rest
		}
	}
	if bid, ok := strings.CutPrefix(key, k.original("")); ok && isUID(bid) {
		return family{originalKeys, k.original(""), "list"}, bid
	}
	return family{}, ""
}
