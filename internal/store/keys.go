package store

import (
	"strconv"

	"routemaster/internal/bus"
)

// keys is the key layout under a namespace: one method a key. lua/lib/keys.lua says
// the same to the scripts; a test holds the two together.
type keys struct{ ns string }

// topics: set of all topic names. Written by publish and subscribe.
func (k keys) topics() string { return k.ns + "topics" }

// topic: hash of publisher (token), counter (events ever received) and last_event
// (packed). Written by publish.
func (k keys) topic(name bus.TopicName) string { return k.ns + "topic:" + string(name) }

// owners: hash of topic to the name of the client that publishes to it or, before anybody does, named it first. Written when a
// topic is claimed or first named. It is not of the founding layout. "topics:owners" would be subscriberTopics of a token.
func (k keys) owners() string { return k.ns + "topic_owners" }

// owned: hash of client name to the number of its topics in owners, without zeros. Written with owners. It is not of the
// founding layout.
func (k keys) owned() string { return k.ns + "topic_owners:counts" }

// unused: hash of topic to when it was first seen without publisher, subscriber and event (ms). Written by the
// housekeeping. It is not of the founding layout.
func (k keys) unused() string { return k.ns + "topic_owners:unused" }

// topicSubscribers: set of the tokens subscribed to a topic. Written by subscribe.
func (k keys) topicSubscribers(name bus.TopicName) string {
	return k.ns + "subscribers:" + string(name)
}

// subscribers: set of all subscribers' tokens. Written by subscribe.
func (k keys) subscribers() string { return k.ns + "subscribers" }

// subscriber: hash of callback, timeout (ms), max_events, uuid, health_points and
// last_attempted_at (ms). Written by subscribe; the last two by the deliveries, and with them events_sent,
// throttled_until (ms) and abreast (most batches delivered at once), which are not of the founding layout.
func (k keys) subscriber(t bus.Token) string { return k.ns + "subscriber:" + string(t) }

// subscriberTopics: set of the topic names a subscriber is subscribed to. Written by subscribe.
func (k keys) subscriberTopics(t bus.Token) string { return k.ns + "topics:" + string(t) }

// tokens: hash of token to client name. Written by the token commands.
func (k keys) tokens() string { return k.ns + "api_tokens:by_token" }

// rotations: hash of token to the new one that takes its place, while that is being done. Written by rotate. It is not of the founding
// layout.
func (k keys) rotations() string { return k.ns + "api_tokens:rotations" }

// batch: list of the subscriber's token, the creation time (ms) and the number of
// attempts, then the packed events, oldest first. Written by publish.
func (k keys) batch(id bus.BatchID) string { return k.ns + "batch:" + string(id) }

// original: where the Ruby original has what we have at batch. Only read, and left alone, by the checks.
func (k keys) original(id bus.BatchID) string { return k.ns + "batches:" + string(id) }

// current: set of the UIDs of a subscriber's batches that take in events, at most one.
// Written by publish, emptied by acquire.
func (k keys) current(t bus.Token) string { return k.ns + "batches:current:" + string(t) }

// origins: list of the spans (W3C traceparent) of the requests that a batch's events came with, a few, while requests
// are traced. Written by publish; it goes with the batch, and expires. It is not of the founding layout.
func (k keys) origins(id bus.BatchID) string { return k.ns + "batches:origins:" + string(id) }

// line: sorted set of the UIDs of a subscriber's batches in the order of their turn. The first
// are being delivered, the others wait. It is there only while a delivery is. Written by
// acquire. It is not of the founding layout.
func (k keys) line(t bus.Token) string { return k.ns + "batches:line:" + string(t) }

// failed: sorted set of the UIDs of a subscriber's batches whose last delivery failed. Below 0 are those that
// failed because the endpoint did: the creation time (ms), less 1e15. Others, which the endpoint refused, have their
// attempts ÷ 1000, or 1 while they wait in the line. Written by nack; an entry goes when its batch does. It is not of the founding
// layout.
func (k keys) failed(t bus.Token) string { return k.ns + "batches:failed:" + string(t) }

// delivery: hash of refusals (deliveries refused since the last that succeeded) and refused_since (ms). It is
// there only after a refusal, until a delivery succeeds. Written by nack. It is not of the founding layout.
func (k keys) delivery(t bus.Token) string { return k.ns + "delivery:" + string(t) }

// batchesIndex: sorted set of the UIDs of all batches by creation time (ms). Written by publish.
func (k keys) batchesIndex() string { return k.ns + "batches:index" }

// eventGauge: hash of token to the number of queued events. Written by publish and ack.
func (k keys) eventGauge() string { return k.ns + "batches:gauges:event" }

// batchGauge: hash of token to the number of batches. Written by publish and ack.
func (k keys) batchGauge() string { return k.ns + "batches:gauges:batch" }

// jobsIndex: set of all jobs of a queue in any state, packed. Written by enqueue and publish.
func (k keys) jobsIndex(q bus.Queue) string { return k.ns + "jobs:index:" + string(q) }

// scheduled: sorted set of the packed jobs to run later, by deadline (ms). Written by publish,
// enqueue and nack.
func (k keys) scheduled(q bus.Queue) string { return k.ns + "jobs:scheduled:" + string(q) }

// instant: list of the packed jobs to run now, taken from the right. Written by publish,
// enqueue and schedule.
func (k keys) instant(q bus.Queue) string { return k.ns + "jobs:instant:" + string(q) }

// pending: list of the one packed job that a worker is running. Written by acquire.
func (k keys) pending(q bus.Queue, w bus.WorkerID) string {
	return k.ns + "jobs:pending:" + string(q) + ":" + string(w)
}

// pendingIndex: set of the workers that may have a pending job. Written by acquire.
func (k keys) pendingIndex(q bus.Queue) string { return k.ns + "jobs:pending:index:" + string(q) }

// idempotency: hash of the idempotency keys (digest) of a client to their requests (digest), a slice of them, and life,
// when the slice was begun and when it expires (ms). Written by publish; it expires as a whole. It is not of the
// founding layout. No name has a slash.
func (k keys) idempotency(name bus.ClientName, slice int) string {
	return k.ns + "idempotency:" + string(name) + "/" + strconv.Itoa(slice)
}

// counters: hash of counter (packed) to its value. Written by the counters' flush.
func (k keys) counters() string { return k.ns + "counters" }

// monitored: hash like counters, of what a metric service that takes increments has got. Written by the monitor. It is not of
// the founding layout.
func (k keys) monitored() string { return k.ns + "counters:monitored" }

// workers: hash of worker to when it was last active (ms). Written by acquire and heartbeat.
func (k keys) workers() string { return k.ns + "workers" }
