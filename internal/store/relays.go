package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptRelayPut     = newScript("relay_put")
	scriptRelayConfirm = newScript("relay_confirm")
	scriptOutboxClose  = newScript("outbox_close")
	scriptOutboxEnds   = newScript("outbox_ends")
	scriptStartsNote   = newScript("starts_note")
	scriptCount        = newScript("subscribers_count")
)

// The scripts that change something for a client.
var (
	scriptDeletionBegin = newScript("deletion_begin")
	scriptDeletionEnd   = newScript("deletion_end")
	scriptOutboxOpen    = newScript("outbox_open")
)

// Relays carries events from the partition in which they were published to the partitions with more
// subscribers of their topic: they leave from one partition, or arrive in it. A publish is one step
// in the topic's home, which also puts the events into an outbox for each of these partitions. A
// job takes the head of an outbox, puts it into the partition in one step, and then removes it. An
// outbox is strictly first in, first out, and a partition remembers what it has received, so a
// crash between two of these steps loses, repeats and reorders nothing. The home counts all events
// put into an outbox, so each subscription records its start in the outbox: events published before
// that are not for it, though they arrive later.
//
//	home: publish -> relay:{NN}, job ["relay", ["NN"]]
//	home: take     the head of the outbox gets a UID            (of the queue's acquire)
//	home: confirm  replicas have that, if they must             (a step only then)
//	NN:   put      its events, unless the UID is known
//	home: unload   the head of the outbox goes                  (of the queue's retry)
//
// Relays is safe for concurrent use.
type Relays struct {
	redis *rdb.Partition
	store *Store
	keys  layout.Keys
}

// NewRelays returns the relays of a store's partition.
func NewRelays(st *Store) *Relays {
	return &Relays{st.Partition(), st, layout.Keys{Namespace: st.Partition().Namespace()}}
}

// maxOpened is how many topics one step opens.
const maxOpened = 500

// Open starts relaying events of topics, of which this is the home, to the partition where a client
// with the given name has subscribed to them, unless that is this one. It creates missing topics;
// the caller has checked the limits. It can be repeated. It fails with [bus.ErrUnavailable].
func (r *Relays) Open(ctx context.Context, topics []bus.TopicName, to rdb.Number, client bus.ClientName) error {
	for some := range slices.Chunk(topics, maxOpened) {
		args := []any{to.String(), string(client)}
		if to == r.redis.Number() {
			args[0] = ""
		}
		for _, topic := range some {
			args = append(args, string(topic))
		}
		if err := r.store.Change(ctx, "open outboxes", scriptOutboxOpen, args...); err != nil {
			return err
		}
	}
	return nil
}

// startsTTL is how long the starts of subscriptions are kept. Relays older than that are for all
// subscriptions.
const startsTTL = 7 * 24 * time.Hour

// NoteStarts records that subscriptions of a client here to topics of a home begin now: their
// events that are in the outbox already are not for them. Existing subscriptions stay as they are.
// It fails with [bus.ErrUnavailable].
func (r *Relays) NoteStarts(ctx context.Context, home *Relays, token bus.Token, topics []bus.TopicName) error {
	if home == r {
		return nil
	}
	ends := home.redis.Change(ctx, scriptOutboxEnds, r.redis.Number().String())
	if ends.Err != nil || len(ends.Results) == 0 { // nothing is on its way
		return rdb.Wrap("read outbox", ends.Err)
	}
	for some := range slices.Chunk(topics, maxOpened) {
		args := []any{string(token), ends.Text(0), ends.Int(1), startsTTL.Milliseconds()}
		for _, topic := range some {
			args = append(args, string(topic))
		}
		if change := r.redis.Change(ctx, scriptStartsNote, args...); change.Err != nil {
			return rdb.Wrap("note where subscriptions start", change.Err)
		}
	}
	return nil
}

// Generations maps topics whose events are relayed to a partition to their generations: see
// [layout.Keys.Outboxes].
type Generations map[bus.TopicName]string

// Opened returns, for each partition, which of some topics are relayed to it. It fails with
// [bus.ErrUnavailable].
func (r *Relays) Opened(ctx context.Context, topics []bus.TopicName) (map[rdb.Number]Generations, error) {
	outboxes := make([]rdb.Reply[map[string]string], len(topics))
	err := r.redis.Reads(ctx, "read outboxes", func(pipe rdb.Commands) {
		for i, topic := range topics {
			outboxes[i] = pipe.HGetAll(ctx, r.keys.Outboxes(topic))
		}
	})
	if err != nil {
		return nil, err
	}
	open := map[rdb.Number]Generations{}
	for i, topic := range topics {
		for text, generation := range outboxes[i].Val() {
			number, err := strconv.Atoi(text)
			if err != nil {
				continue // something else has written it
			}
			if open[rdb.Number(number)] == nil {
				open[rdb.Number(number)] = Generations{}
			}
			open[rdb.Number(number)][topic] = generation
		}
	}
	return open, nil
}

// Close stops relaying a topic's events to a partition, unless a client there has subscribed since
// the generation was read. It can be repeated. It fails with [bus.ErrUnavailable].
func (r *Relays) Close(ctx context.Context, topic bus.TopicName, to rdb.Number, generation string) (closed bool, err error) {
	change := r.redis.Change(ctx, scriptOutboxClose, string(topic), to.String(), generation)
	return change.Changed, rdb.Wrap("close outbox", change.Err)
}

// CloseUnwanted stops relaying the events of topics to a partition that has no subscriber of them,
// given what was opened before. A subscription is stored there before it opens the outbox, so a
// subscription that is missed here changes the generation. It fails with [bus.ErrUnavailable].
func (r *Relays) CloseUnwanted(ctx context.Context, there *Relays, open Generations) error {
	topics := slices.Collect(maps.Keys(open))
	args := make([]any, len(topics))
	for i, topic := range topics {
		args[i] = string(topic)
	}
	subscribers, err := there.redis.Run(ctx, scriptCount, args...).List()
	if err != nil || len(subscribers) != len(topics) {
		return rdb.Wrap("count subscribers", err)
	}
	for i, topic := range topics {
		if subscribers[i] != int64(0) {
			continue
		}
		if _, err := r.Close(ctx, topic, there.redis.Number(), open[topic]); err != nil {
			return err
		}
	}
	return nil
}

// Deletion is one of a topic, at its home. No other is begun until it is ended, or may not take any
// longer.
type Deletion struct {
	Topic bus.TopicName
	uid   bus.BatchID
	// To are the partitions to which the topic's events are relayed: since which subscription, and how
	// many events will have been carried there once all that is on its way has been.
	To map[rdb.Number]DeletionTo
}

// DeletionTo is a partition to which events of a topic are relayed that is being deleted.
type DeletionTo struct {
	generation string
	carried    int64
}

// DeletionTime is how long a deletion may take.
const DeletionTime = 10 * time.Second

// BeginDeletion begins to delete a topic in the name of by, its publisher, or of root when by is
// empty. Nothing is changed yet. It fails as [Store.DeleteTopic], and with
// [bus.ErrTopicBusy] while another deletion of the topic runs.
func (r *Relays) BeginDeletion(ctx context.Context, topic bus.TopicName, by bus.Token) (*Deletion, error) {
	d := &Deletion{Topic: topic, uid: bus.NewBatchID(), To: map[rdb.Number]DeletionTo{}}
	change := r.redis.Change(ctx, scriptDeletionBegin, string(topic), string(by), string(d.uid), DeletionTime.Milliseconds())
	if change.Err != nil || !change.Changed {
		return nil, change.Refusal("delete topic", map[string]error{
			"topic unknown": bus.ErrTopicUnknown, "topic claimed": bus.ErrTopicClaimed, "deleting": bus.ErrTopicBusy,
		})
	}
	for i := 0; i+2 < len(change.Results); i += 3 {
		number, err := strconv.Atoi(change.Text(i))
		if err != nil {
			return nil, fmt.Errorf("delete topic: %w", err)
		}
		d.To[rdb.Number(number)] = DeletionTo{change.Text(i + 1), int64(change.Int(i + 2))}
	}
	return d, nil
}

// EndDeletion ends a deletion. With remove, it removes the topic unless a client elsewhere has
// subscribed to it since the deletion was begun. It fails with [bus.ErrUnavailable], also when the
// bus is closed meanwhile: then the topic stays.
func (r *Relays) EndDeletion(ctx context.Context, d *Deletion, remove bool) (removed bool, err error) {
	args := []any{string(d.Topic), string(d.uid), remove}
	for number, to := range d.To {
		args = append(args, number.String(), to.generation)
	}
	change := r.redis.Change(ctx, scriptDeletionEnd, args...)
	return change.Changed && remove, rdb.Wrap("delete topic", change.Err)
}

// HasCarried reports whether all has been carried that was on its way when a deletion was begun. It
// fails with [bus.ErrUnavailable].
func (r *Relays) HasCarried(ctx context.Context, d *Deletion) (bool, error) {
	carried, err := r.redis.HGetAll(ctx, r.keys.RelayCarried()).Result()
	if err != nil {
		return false, rdb.Wrap("read relays", err)
	}
	for number, to := range d.To {
		if rdb.Integer(carried[number.String()], 0) < to.carried {
			return false, nil
		}
	}
	return true, nil
}

// Outbox is the backlog of events for one partition.
type Outbox struct {
	Events int64
	// Since is when the relay of its oldest events began; zero if none has, or there are none.
	Since time.Time
}

// Outboxes returns the outboxes to all partitions, by number; partitions is how many there are. It
// fails with [bus.ErrUnavailable].
func (r *Relays) Outboxes(ctx context.Context, partitions int) ([]Outbox, error) {
	lengths := make([]rdb.Reply[int64], partitions)
	var taken rdb.Reply[map[string]string]
	err := r.redis.Pipelined(ctx, "read outboxes", func(pipe rdb.Commands) {
		for to := range lengths {
			lengths[to] = pipe.LLen(ctx, r.keys.Outbox(rdb.Number(to)))
		}
		taken = pipe.HGetAll(ctx, r.keys.RelayTaken())
	})
	if err != nil {
		return nil, err
	}
	all := make([]Outbox, partitions)
	for to := range all {
		all[to].Events = lengths[to].Val()
		noted := strings.Fields(taken.Val()[rdb.Number(to).String()])
		if len(noted) == 3 {
			all[to].Since = time.UnixMilli(rdb.Integer(noted[2], 0))
		}
	}
	return all, nil
}

// maxTries is how often a relay is sent if subscribers change their lanes meanwhile.
const maxTries = 6

// Arrival is the result of relayed events.
type Arrival struct {
	// Unreadable is how many events could not be read, and were left out.
	Unreadable int
	// Unwanted are topics that had no subscriber.
	Unwanted []bus.TopicName
	// Received is how many events each subscriber got; empty if it was done before.
	Received map[bus.Token]int
}

// errNotTaken means that the head of an outbox is another worker's by now.
var errNotTaken = errors.New("the head of the outbox is not this one any more")

// confirm has replicas confirm that a head was taken, and the events in it published, where they
// must confirm changes. Else a failover might forget both, and have the same events follow under
// another UID. It fails with [bus.ErrUnavailable].
func (r *Relays) confirm(ctx context.Context, head *Head) error {
	if !r.redis.HasConfirmation() {
		return nil
	}
	change := r.redis.Change(ctx, scriptRelayConfirm, head.To.String(), head.UID)
	return change.Refusal("confirm relay", map[string]error{"changed": errNotTaken})
}

// Put appends relayed events from another partition to the batches of the subscribers here, in one
// step, unless it was done before. It fails with [bus.ErrTooManyBatches] if it has several events,
// and with [bus.ErrUnavailable].
func (r *Relays) Put(ctx context.Context, from rdb.Number, head *Head, now time.Time) (arrival Arrival, err error) {
	runs, unreadable := runsOf(head.Events)
	arrival.Unreadable = unreadable
	for range maxTries {
		change := r.redis.Change(ctx, scriptRelayPut, r.putArgs(from, head, runs, now)...)
		if change.Err != nil || change.Changed {
			arrival.read(&change)
			return arrival, rdb.Wrap("relay", change.Err)
		}
		if change.Text(0) != "lanes" {
			return arrival, change.Refusal("relay", map[string]error{"too many batches": bus.ErrTooManyBatches})
		}
		stale := map[bus.TopicName][]string{}
		for i := 1; i+1 < len(change.Results); i += 2 {
			stale[bus.TopicName(change.Text(i))] = strings.Fields(change.Text(i + 1))
		}
		if err := r.store.LearnLanes(ctx, stale); err != nil {
			return arrival, err
		}
	}
	return arrival, bus.ErrUnavailable
}

// read reads the reply of lua/relay_put.lua.
func (a *Arrival) read(change *rdb.Change) {
	for _, topic := range strings.Fields(change.Text(0)) {
		a.Unwanted = append(a.Unwanted, bus.TopicName(topic))
	}
	a.Received = make(map[bus.Token]int, len(change.Results)/2)
	for i := 1; i+1 < len(change.Results); i += 2 {
		a.Received[bus.Token(change.Text(i))] = change.Int(i + 1)
	}
}

// relayArgs are the first arguments of lua/relay_put.lua, under the same names there.
type relayArgs struct {
	Home, UID string // the partition that the events are from, and the relay
	Now       int64  // ms
	// Seed to MaxOpened are as publishArgs have them.
	Seed               string
	MaxEvents          int
	Timeout, WaitUntil int64
	MaxOpened          int
	NumbersOf          string // as read_carried has it
}

func (a relayArgs) list() []any {
	return []any{a.Home, a.UID, a.Now, a.Seed, a.MaxEvents, a.Timeout, a.WaitUntil, a.MaxOpened, a.NumbersOf}
}

func (r *Relays) putArgs(from rdb.Number, head *Head, runs []run, now time.Time) []any {
	args := relayArgs{
		Home: from.String(), UID: head.UID, Now: now.UnixMilli(), Seed: bus.NewBatchSeed(),
		MaxEvents: bus.DefaultMaxEvents, Timeout: bus.DefaultTimeout.Milliseconds(), WaitUntil: queue.TurnDeadline(now),
		MaxOpened: bus.MaxOpenedBatches, NumbersOf: head.of,
	}.list()
	for i := range runs {
		run := &runs[i]
		lanes := r.store.LaneArgs(&run.Publication)
		args = append(args, string(run.Topic), len(lanes), len(run.Events), head.before+int64(run.at))
		args = append(args, lanes...)
		for _, event := range run.Events {
			args = append(args, string(event))
		}
	}
	return args
}

// run is some events of one topic that follow each other in a head, from one on.
type run struct {
	Publication
	at int
}

// runsOf divides events into runs.
func runsOf(events []wire.PackedEvent) (runs []run, unreadable int) {
	for i, event := range events {
		topic, ok := topicOf(event)
		if !ok {
			unreadable++
			continue
		}
		last := len(runs) - 1
		if last < 0 || runs[last].Topic != topic || runs[last].at+len(runs[last].Events) != i {
			runs, last = append(runs, run{Publication{Topic: topic}, i}), last+1
		}
		runs[last].Events = append(runs[last].Events, event)
	}
	return runs, unreadable
}

func topicOf(event wire.PackedEvent) (topic bus.TopicName, ok bool) {
	value, err := wire.ValueAt(event, "/topic")
	return topic, err == nil && json.Unmarshal(value, &topic) == nil && topic != ""
}
