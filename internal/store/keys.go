package store

import (
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Keys is the key layout under a namespace, the prefix of all keys: one method a key.
// lua/lib/keys.lua says the same to the scripts; a test holds the two together.
type Keys struct{ Namespace string }

// Topics is the set of all topics' names. Written by publish and subscribe.
func (k Keys) Topics() string { return k.Namespace + "topics" }

// Topic is a hash of publisher (token), counter (events ever received) and last_event (packed).
// Written by publish.
func (k Keys) Topic(name bus.TopicName) string { return k.Namespace + "topic:" + string(name) }

// Owners is a hash of topic to the name of the client that publishes to it or, before anybody does,
// named it first. Written when a topic is claimed or first named. It is not of the founding layout.
// "topics:owners" would be SubscriberTopics of a token.
func (k Keys) Owners() string { return k.Namespace + "topic_owners" }

// Owned is a hash of client name to the number of its topics in Owners, without zeros. Written with
// Owners. It is not of the founding layout.
func (k Keys) Owned() string { return k.Namespace + "topic_owners:counts" }

// Unused is a hash of topic to when it was first seen without publisher, subscriber and event (ms).
// Written by the housekeeping. It is not of the founding layout.
func (k Keys) Unused() string { return k.Namespace + "topic_owners:unused" }

// History is a list of the events that a topic has received, oldest first, as long as its limits
// keep them: each the time of receipt (ms) in 8 bytes, the highest first, and the packed event.
// Written by publish while the topic keeps a history, which [Keys.Plans] says. It is not of the
// founding layout.
func (k Keys) History(name bus.TopicName) string { return k.Namespace + "history:" + string(name) }

// HistoryField is the field of [Keys.Plans] that is there while a topic keeps a history.
func HistoryField(name bus.TopicName) string { return "/" + string(name) }

// HistoryLimits is a hash of the limits of a topic's history, as far as it has them: events, age
// (ms) and bytes; and of its state: first, the position of its oldest entry, or of the next event
// if it has none; size, the bytes of its entries; and last, the time of receipt of the newest (ms).
// It goes with the history. It is not of the founding layout.
func (k Keys) HistoryLimits(name bus.TopicName) string {
	return k.Namespace + "history:limits:" + string(name)
}

// TopicSubscribers is the set of the tokens subscribed to a topic. Written by subscribe.
func (k Keys) TopicSubscribers(name bus.TopicName) string {
	return k.Namespace + "subscribers:" + string(name)
}

// Subscribers is the set of all subscribers' tokens. Written by subscribe.
func (k Keys) Subscribers() string { return k.Namespace + "subscribers" }

// Subscriber is a hash of callback, timeout (ms), max_events, uuid, health_points and
// last_attempted_at (ms). Written by subscribe; the last two by the deliveries.
func (k Keys) Subscriber(t bus.Token) string { return k.Namespace + "subscriber:" + string(t) }

// SubscriberTopics is the set of the topics a subscriber is subscribed to. Written by subscribe.
func (k Keys) SubscriberTopics(t bus.Token) string { return k.Namespace + "topics:" + string(t) }

// Tokens is a hash of token to client name. Written by the token commands.
func (k Keys) Tokens() string { return k.Namespace + "api_tokens:by_token" }

// Rotations is a hash of token to the new one that takes its place, while that is being done.
// Written by rotate. It is not of the founding layout.
func (k Keys) Rotations() string { return k.Namespace + "api_tokens:rotations" }

// Identity is a hash by which processes notice that Redis has lost data: `id`, `ticks` and, after a
// loss, `before`, `lost` and `lost_at`. Written by every process. It is not of the founding layout.
func (k Keys) Identity() string { return k.Namespace + rdb.IdentityKey }

// Batch is a list of the subscriber's token, the creation time (ms) and the number of attempts,
// then the packed events, oldest first. Written by publish.
func (k Keys) Batch(id bus.BatchID) string { return k.Namespace + "batch:" + string(id) }

// Original is where the Ruby original has what we have at Batch.
func (k Keys) Original(id bus.BatchID) string { return k.Namespace + "batches:" + string(id) }

// Current is the set of the UIDs of a subscriber's batches that take in events, at most one.
// Written by publish, emptied by acquire.
func (k Keys) Current(t bus.Token) string { return k.Namespace + "batches:current:" + string(t) }

// CurrentOfLane is what Current is, for a lane of a subscriber that has several; lane 0 has
// Current. No token has a slash. It is not of the founding layout.
func (k Keys) CurrentOfLane(t bus.Token, lane int) string {
	if lane == 0 {
		return k.Current(t)
	}
	return k.Current(t) + "/" + strconv.Itoa(lane)
}

// Plans is a hash of what a publish has to know beyond the founding keys, if there is such: token
// to the version of the subscriber's lanes (see [Lanes]), / and a topic that keeps a history to 1,
// ? and a watched topic to its channel's UID. It is not of the founding layout.
func (k Keys) Plans() string { return k.Namespace + "plans" }

// Traceparents is a list of the spans (W3C traceparent) of a few of the requests that a batch's
// events came with, while requests are traced. It goes with the batch, and expires. It is not of
// the founding layout.
func (k Keys) Traceparents(id bus.BatchID) string {
	return k.Namespace + "batches:traceparents:" + string(id)
}

// Failed is a sorted set of the UIDs of a subscriber's batches whose last delivery failed. Below 0
// are those that failed because the endpoint did: the creation time (ms), less 1e15. Others, which
// the endpoint refused, have their attempts ÷ 1000; the one that is retried, in its lane, has 1,
// those that keep their turn there have 2. Written when a delivery fails, and as such a batch comes
// up; an entry goes when its batch does. It is not of the founding layout.
func (k Keys) Failed(t bus.Token) string { return k.Namespace + "batches:failed:" + string(t) }

// Delivery is a hash of what the deliveries to a subscriber have shown: name (the client's name),
// events_sent (acknowledged, ever), throttled_until (ms, while its endpoint fails), refusals
// (deliveries refused since the last that succeeded), refused_since (ms), retried_at (ms, when a
// refused batch was tried again), notices (UIDs of its gap notices; some may be gone), overtaken
// (the batches that were in flight when it was to be tried anew) and former (the batches of an
// earlier subscription that were in flight when it subscribed anew). Written by subscribe and by
// the deliveries; it goes with the subscriber. It is not of the founding layout.
func (k Keys) Delivery(t bus.Token) string { return k.Namespace + "delivery:" + string(t) }

// BatchState is a hash of what a batch needs beyond its list: lane (its number, unless it is the
// first, 0), revision (how often its content has changed since it was closed),
// refusals (of its content), suspect (the number of its first events of which one is refused),
// webhook_id (what its content bore when it was a dead letter), test (1 for a test event), replay
// (the UID of the replay that it is of) and gap (1 for a gap notice). Written by whatever needs it,
// and only for subscribers with a plan; it goes with the batch. It is not of the founding layout.
func (k Keys) BatchState(id bus.BatchID) string { return k.Namespace + "batches:state:" + string(id) }

// Options is a hash of a subscriber's options that differ from their default, by name (JSON), with
// plan, their version, secrets, its signing secrets (JSON), and past_lanes, how many lanes there
// were if there were more, and batches may be left. Written by subscribe, by changes of options, by
// deliveries and by changes of secrets; it goes with the subscriber. It is not of the founding
// layout.
func (k Keys) Options(t bus.Token) string { return k.Namespace + "options:" + string(t) }

// Attempts is a list of the records of a subscriber's last attempts (packed), the latest first.
// Written by the deliveries; it expires a week after the last. It is not of the founding layout.
func (k Keys) Attempts(t bus.Token) string { return k.Namespace + "attempts:" + string(t) }

// DeadLetters is a sorted set of the UIDs of a subscriber's dead letters by time of death (ms).
// Written by the deliveries. It is not of the founding layout.
func (k Keys) DeadLetters(t bus.Token) string { return k.Namespace + "deadletters:index:" + string(t) }

// DeadLetter is a list like that of a batch: events that died together. It was a batch, or is an
// event of one. It is not of the founding layout.
func (k Keys) DeadLetter(id bus.BatchID) string { return k.Namespace + "deadletter:" + string(id) }

// DeadLetterCause is a hash of reason, status, error, note, webhook_id, revision (the batch's), its
// lane unless that was the first, bytes (of the packed events) and died_at (ms). It goes with the
// dead letter. It is not of the founding layout.
func (k Keys) DeadLetterCause(id bus.BatchID) string {
	return k.Namespace + "deadletter:why:" + string(id)
}

// DeadLetterEvents is a hash of token to the number of events in its dead letters, without zeros.
// It is not of the founding layout.
func (k Keys) DeadLetterEvents() string { return k.Namespace + "deadletters:events" }

// DeadLetterBytes is a hash of token to the bytes of the events in its dead letters, without zeros.
// It is not of the founding layout.
func (k Keys) DeadLetterBytes() string { return k.Namespace + "deadletters:bytes" }

// Replay is a hash of what a replay copies: token, topic, next (the position of the next event to
// copy), to (that of the last), copied and skipped (events), state, created_at (ms) and error.
// It expires a day after the replay has ended and its events have left
// the queue, and goes with the subscriber. It is not of the founding layout.
func (k Keys) Replay(id bus.ReplayID) string { return k.Namespace + "replay:" + string(id) }

// ReplayBatches is the set of the UIDs of the batches of a replay that may be queued. It goes as
// the replay leaves RunningReplays. It is not of the founding layout.
func (k Keys) ReplayBatches(id bus.ReplayID) string {
	return k.Namespace + "replays:batches:" + string(id)
}

// RunningReplays is the set of the UIDs of replays that copy, or whose events are still queued. It
// is not of the founding layout.
func (k Keys) RunningReplays() string { return k.Namespace + "replays:running" }

// Replays is the set of the UIDs of a subscriber's replays; those that have expired may be in it.
// It expires with the last of them. It is not of the founding layout.
func (k Keys) Replays(t bus.Token) string { return k.Namespace + "replays:of:" + string(t) }

// Gaps is a hash of what a subscriber's gap notice tells that waits to tell it: batch (its UID),
// events, batches, since and until (creation of the first and the last batch, ms), reason. Written
// by whatever loses events of a subscriber with gap_notices; it goes as the notice is taken. It is
// not of the founding layout.
func (k Keys) Gaps(t bus.Token) string { return k.Namespace + "gaps:" + string(t) }

// Retention is the set of the tokens of subscribers that keep batches for an age, or a number of
// events. Written with the options. It is not of the founding layout.
func (k Keys) Retention() string { return k.Namespace + "retention" }

// BatchesIndex is a sorted set of the UIDs of all batches by creation time (ms). Written by
// publish.
func (k Keys) BatchesIndex() string { return k.Namespace + "batches:index" }

// EventGauge is a hash of token to the number of queued events. Written by publish and ack.
func (k Keys) EventGauge() string { return k.Namespace + "batches:gauges:event" }

// BytesGauge is a hash of token to the bytes of the packed events that are queued, without zeros.
// The Ruby original does not have it. Written by every step that changes what is queued.
func (k Keys) BytesGauge() string { return k.Namespace + "batches:gauges:bytes" }

// BatchGauge is a hash of token to the number of batches. Written by publish and ack.
func (k Keys) BatchGauge() string { return k.Namespace + "batches:gauges:batch" }

// Idempotency is a hash of the idempotency keys (digest) of a client to their requests (digest), a
// slice of them, and life, when the slice was begun and when it expires (ms). Written by publish;
// it expires as a whole. It is not of the founding layout. No client's name has a slash.
func (k Keys) Idempotency(name bus.ClientName, slice int) string {
	return k.Namespace + "idempotency:" + string(name) + "/" + strconv.Itoa(slice)
}

// Migration is there while the Ruby original may run beside this program. Written by the migration,
// and by whatever meets a batch of the original; it expires. It is not of the founding layout.
func (k Keys) Migration() string { return k.Namespace + "migration" }

// Copying is there from when `rtm copy` begins to copy a bus to this Redis until all is there: when
// it began (ms). Web and worker do not start meanwhile. On a bus with partitions the first has it.
// It is not of the founding layout.
func (k Keys) Copying() string { return k.Namespace + "copying" }

// Counters is a hash of counter (packed) to its value. Written by the counters' flush.
func (k Keys) Counters() string { return k.Namespace + "counters" }

// Monitored is a hash like Counters, of what a metric service that takes increments has got.
// Written by the monitor. It is not of the founding layout.
func (k Keys) Monitored() string { return k.Namespace + "counters:monitored" }
