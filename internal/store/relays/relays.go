// Package relays carries events from the partition in which they were published to those with more
// subscribers of their topic. A publish is one step in the topic's home, which also puts the events
// into an outbox for each of these partitions; a job takes the head of an outbox, hands it to the
// partition in one step, and then removes it. Nothing passes anything in an outbox, and a partition
// knows what it has got, so a crash between two of these steps loses, repeats and reorders nothing.
//
//	home: publish -> relay:{NN}, job ["relay", ["NN"]]
//	home: take     the head of the outbox gets a UID            (of the queue's acquire)
//	NN:   put      its events, unless the UID is known
//	home: unload   the head of the outbox goes                  (of the queue's retry)
package relays

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptRelayPut    = newScript("relay_put")
	scriptOutboxOpen  = newScript("outbox_open")
	scriptOutboxClose = newScript("outbox_close")
)

func newScript(name string) *rdb.Script {
	return rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, name))
}

// Number is that of a partition, from 0 on.
type Number int

// String is the number as keys and jobs have it: two digits.
func (n Number) String() string { return fmt.Sprintf("%02d", int(n)) }

// Relays are those that leave from, and arrive in, one partition. It is safe for concurrent use.
type Relays struct {
	redis *rdb.Partition
	store *store.Store
	keys  Keys
}

// New returns the relays of a store's partition.
func New(st *store.Store) *Relays {
	return &Relays{st.Partition(), st, Keys{st.Partition().Namespace()}}
}

// Open has a topic's events be relayed to a partition, where a client of a name has subscribed to
// it, from now on. The topic is created if need be. It can be repeated. It fails with a
// [bus.TopicLimitError] or [bus.ErrUnavailable].
func (r *Relays) Open(ctx context.Context, topic bus.TopicName, to Number, client bus.ClientName) error {
	ofClient, ofBus := r.store.TopicLimits()
	return r.store.Change(ctx, "open outbox", scriptOutboxOpen, string(topic), to.String(), string(client), ofClient, ofBus)
}

// Generation is that of a topic's outbox to a partition, for [Relays.Close]; empty if its events
// are not relayed there. It fails with [bus.ErrUnavailable].
func (r *Relays) Generation(ctx context.Context, topic bus.TopicName, to Number) (string, error) {
	generation, err := r.redis.HGet(ctx, r.keys.Outboxes(topic), to.String()).Result()
	return generation, rdb.Wrap("read outbox", err)
}

// Close ends that a topic's events are relayed to a partition, unless somebody there has subscribed
// since a generation was read. It can be repeated. It fails with [bus.ErrUnavailable].
func (r *Relays) Close(ctx context.Context, topic bus.TopicName, to Number, generation string) (closed bool, err error) {
	change := r.redis.Change(ctx, scriptOutboxClose, string(topic), to.String(), generation)
	return change.Changed, rdb.Wrap("close outbox", change.Err)
}

// Waiting is how many events are in the outbox to a partition. It fails with [bus.ErrUnavailable].
func (r *Relays) Waiting(ctx context.Context, to Number) (int64, error) {
	n, err := r.redis.LLen(ctx, r.keys.Outbox(to)).Result()
	return n, rdb.Wrap("read outbox", err)
}

// maxTries is how often a relay is sent whose subscribers change their lanes meanwhile.
const maxTries = 6

// Put appends what was relayed from another partition to the batches of the subscribers here, in
// one step, unless it was done before. An event that cannot be read is left out, and counted. It
// fails with [bus.ErrTooManyBatches] if it has several events, and with [bus.ErrUnavailable].
func (r *Relays) Put(ctx context.Context, from Number, head *Head, now time.Time) (unreadable int, err error) {
	runs, unreadable := runsOf(head.Events)
	for range maxTries {
		change := r.redis.Change(ctx, scriptRelayPut, r.putArgs(from, head.UID, runs, now)...)
		if change.Err != nil || change.Changed {
			return unreadable, rdb.Wrap("relay", change.Err)
		}
		if change.Text(0) != "lanes" {
			return unreadable, change.Refusal("relay", map[string]error{"too many batches": bus.ErrTooManyBatches})
		}
		stale := map[bus.TopicName][]string{}
		for i := 1; i+1 < len(change.Results); i += 2 {
			stale[bus.TopicName(change.Text(i))] = strings.Fields(change.Text(i + 1))
		}
		if err := r.store.LearnLanes(ctx, stale); err != nil {
			return unreadable, err
		}
	}
	return unreadable, bus.ErrUnavailable
}

func (r *Relays) putArgs(from Number, uid string, runs []store.Publication, now time.Time) []any {
	args := []any{
		from.String(), uid, now.UnixMilli(), bus.NewBatchSeed(),
		bus.DefaultMaxEvents, bus.DefaultTimeout.Milliseconds(), queue.TurnDeadline(now), bus.MaxOpenedBatches,
	}
	for i := range runs {
		run := &runs[i]
		lanes := r.store.LaneArgs(run)
		args = append(args, string(run.Topic), len(lanes), len(run.Events))
		args = append(args, lanes...)
		for _, event := range run.Events {
			args = append(args, string(event))
		}
	}
	return args
}

// runsOf divides events into runs of one topic each.
func runsOf(events []wire.PackedEvent) (runs []store.Publication, unreadable int) {
	for _, event := range events {
		topic, ok := topicOf(event)
		if !ok {
			unreadable++
			continue
		}
		if len(runs) == 0 || runs[len(runs)-1].Topic != topic {
			runs = append(runs, store.Publication{Topic: topic})
		}
		run := &runs[len(runs)-1]
		run.Events = append(run.Events, event)
	}
	return runs, unreadable
}

func topicOf(event wire.PackedEvent) (topic bus.TopicName, ok bool) {
	value, err := wire.ValueAt(event, "/topic")
	return topic, err == nil && json.Unmarshal(value, &topic) == nil && topic != ""
}
