package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptReplayStart = newScript("replay_start")
	scriptReplayStep  = newScript("replay_step")
	scriptReplayEnd   = newScript("replay_end")
	scriptReplayClose = newScript("replay_close")
)

// Errors that callers branch on.
var (
	// ErrReplayNotSubscribed means that the subscriber is not subscribed to the topic.
	ErrReplayNotSubscribed = errors.New("not subscribed to the topic")
	// ErrReplayNoHistory means that the topic keeps no history.
	ErrReplayNoHistory = errors.New("there is no history to replay: the topic keeps none")
	// ErrNothingToReplay means that the history has nothing in the range.
	ErrNothingToReplay = errors.New("the history has no events in this range")
	// ErrReplayRunning means that another replay of the topic runs.
	ErrReplayRunning = errors.New("a replay of this topic runs")
	// ErrTooManyReplays means that [MaxReplaysKept] replays of the subscriber run or have events
	// queued.
	ErrTooManyReplays = errors.New("too many replays")
	// ErrReplayUnknown means that the subscriber has no such replay.
	ErrReplayUnknown = errors.New("there is no such replay")
)

// replayRefusals are the scripts' words for why they changed nothing.
var replayRefusals = map[string]error{
	"not subscribed": ErrReplayNotSubscribed, "running": ErrReplayRunning, "too many": ErrTooManyReplays, "unknown": ErrReplayUnknown,
}

const (
	// MaxReplaysKept is how many replays of a subscriber are kept, ended ones included. Beyond that
	// the replay that was closed first is removed.
	MaxReplaysKept = 100
	// keptFor is how long a replay is kept after it was closed.
	keptFor = 24 * time.Hour
)

// Replays sends subscribers events of a topic's history again. It does not affect other
// subscribers, the topic's counter or its last event. It is safe for concurrent use.
//
//	start -> running -> done
//	            |-----> cancelled    by the subscriber, or because it is not subscribed any more
//	            '-----> failed       the history is gone
//
// The housekeeping copies a slice of the history at a time into the subscriber's queue, in batches
// of their own. One step compares the replay's position with the position that the slice was read
// for, and advances it, so a crash between any two steps repeats nothing and skips nothing. No
// field counts how many events of a replay are queued, because deaths, drops and removals would
// have to update it: the number is the sum over the replay's remaining batches. So the bus watches
// a replay that has ended until its batches are gone, and then closes it.
type Replays struct {
	redis *rdb.Partition
	keys  layout.Keys
	store *Store
	all   *Bus
}

// NewReplays returns the replays in one of the stores of a bus.
func NewReplays(all *Bus, st *Store) *Replays {
	return &Replays{st.Partition(), layout.Keys{Namespace: st.Partition().Namespace()}, st, all}
}

// historyOf returns the histories of the topic's home.
func (r *Replays) historyOf(topic bus.TopicName) *History {
	return NewHistory(r.all.Home(topic))
}

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay.
const (
	// ReplayRunning is one that copies.
	ReplayRunning ReplayState = "running"
	// ReplayDone is one that has copied its range. Events of it may still be queued.
	ReplayDone ReplayState = "done"
	// ReplayCancelled is one that was stopped, or whose subscriber has unsubscribed from the topic.
	ReplayCancelled ReplayState = "cancelled"
	// ReplayFailed is one that cannot go on: see [Replay].Error.
	ReplayFailed ReplayState = "failed"
)

// Replay is a replay of a topic's history to a subscriber.
type Replay struct {
	ID         bus.ReplayID
	Subscriber bus.Token
	Topic      bus.TopicName
	// Next is the position of the next event to copy, To the position of the last.
	Next, To int64
	// Copied is how many events were put into the queue, Skipped how many the history had lost before
	// their turn.
	Copied, Skipped int64
	State           ReplayState
	CreatedAt       time.Time
	// Error is why it ended, if it did before it was done and was not cancelled by a request.
	Error string
	// Asked is the range of the request that began it, as text.
	Asked string
}

// From is the position of its first event.
func (r Replay) From() int64 { return r.Next - r.Copied - r.Skipped }

// parseReplay makes a replay of its hash. It reports whether there is one.
func parseReplay(id string, hash map[string]string) (r Replay, ok bool) {
	number := func(field string) int64 { return rdb.Integer(hash[field], 0) }
	return Replay{
		ID: bus.ReplayID(id), Subscriber: bus.Token(hash["token"]), Topic: bus.TopicName(hash["topic"]),
		Next: number("next"), To: number("to"), Copied: number("copied"), Skipped: number("skipped"),
		State: ReplayState(hash["state"]), CreatedAt: time.UnixMilli(number("created_at")), Error: hash["error"], Asked: hash["asked"],
	}, hash["state"] != ""
}

// ReplayRange selects events of a history. Zero fields are not set.
type ReplayRange struct {
	// From is the position of the first, or Since when it was received: then, or later. Without them
	// it is the oldest.
	From  int64
	Since time.Time
	// To is the position of the last, or Until when it was received: then, or before. Without them it
	// is the newest.
	To    int64
	Until time.Time
}

// text says the same of the same range.
func (r ReplayRange) text() string {
	since, until := int64(0), int64(0)
	if !r.Since.IsZero() {
		since = r.Since.UnixMilli()
	}
	if !r.Until.IsZero() {
		until = r.Until.UnixMilli()
	}
	return fmt.Sprint(r.From, since, r.To, until)
}

// ReplayIDFor is the ID of the replay that a client begins for a subscriber with an idempotency
// key: always the same one, so that it begins once.
func ReplayIDFor(client bus.ClientName, token bus.Token, key string) bus.ReplayID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", client, token, key))
	return bus.ReplayID(base32.StdEncoding.EncodeToString(sum[:])[:bus.UIDLen])
}

// Start begins a replay of a topic's history to a subscriber that is subscribed to it. Events
// published from now on are not part of it. It fails with [bus.ErrTopicUnknown],
// [ErrReplayNoHistory], [ErrReplayNotSubscribed], [ErrNothingToReplay], [ErrReplayRunning],
// [ErrTooManyReplays] or [bus.ErrUnavailable].
func (r *Replays) Start(ctx context.Context, token bus.Token, topic bus.TopicName, of ReplayRange, now time.Time) (Replay, error) {
	return r.start(ctx, bus.NewReplayID(), token, topic, of, now)
}

// StartOnce is [Replays.Start] for an ID of [ReplayIDFor]. If there is a replay of this ID, it
// returns that one and false, or fails with [bus.ErrIdempotencyKeyReused] if that was begun for
// another topic or range.
func (r *Replays) StartOnce(ctx context.Context, id bus.ReplayID, token bus.Token, topic bus.TopicName, of ReplayRange, now time.Time) (begun Replay, isNew bool, err error) {
	begun, err = r.start(ctx, id, token, topic, of, now)
	if err == nil || errors.Is(err, bus.ErrUnavailable) {
		return begun, err == nil, err
	}
	found, failure := r.read(ctx, "read a replay", []string{string(id)})
	switch {
	case failure != nil:
		return Replay{}, false, failure
	case len(found) == 0:
		return Replay{}, false, err
	case found[0].Topic != topic || found[0].Asked != of.text():
		return Replay{}, false, bus.ErrIdempotencyKeyReused
	default:
		return found[0], false, nil
	}
}

func (r *Replays) start(ctx context.Context, id bus.ReplayID, token bus.Token, topic bus.TopicName, of ReplayRange, now time.Time) (Replay, error) {
	from, to, err := r.resolve(ctx, topic, of)
	if err != nil {
		return Replay{}, err
	}
	started := Replay{
		ID: id, Subscriber: token, Topic: topic, Next: from, To: to, State: ReplayRunning,
		CreatedAt: time.UnixMilli(now.UnixMilli()), Asked: of.text(),
	}
	args := replayArgs{
		Token: string(token), ID: string(id), Topic: string(topic), First: from, Last: to, Now: now.UnixMilli(),
		MaxKept: MaxReplaysKept, Asked: started.Asked,
	}
	_, err = r.change(ctx, "start replay", scriptReplayStart, args.list()...)
	return started, err
}

// replayArgs are the arguments of lua/replay_start.lua, under the same names there.
type replayArgs struct {
	Token, ID, Topic string
	First, Last, Now int64 // positions of the first and the last event; ms
	MaxKept          int   // replays of the subscriber
	Asked            string
}

func (a replayArgs) list() []any {
	return []any{a.Token, a.ID, a.Topic, a.First, a.Last, a.Now, a.MaxKept, a.Asked}
}

// resolve returns the positions of the first and the last event of a range that a history has.
func (r *Replays) resolve(ctx context.Context, topic bus.TopicName, of ReplayRange) (from, to int64, err error) {
	kept, err := r.historyOf(topic).Get(ctx, topic)
	if errors.Is(err, ErrNoHistory) {
		err = ErrReplayNoHistory
	}
	if err != nil {
		return 0, 0, err
	}
	from, to = of.From, cmp.Or(of.To, kept.Last)
	if !of.Since.IsZero() {
		from, err = r.historyOf(topic).PositionAt(ctx, topic, of.Since)
	}
	if err == nil && !of.Until.IsZero() {
		to, err = r.historyOf(topic).PositionAt(ctx, topic, of.Until.Add(time.Millisecond))
		to--
	}
	from, to = max(from, kept.First), min(to, kept.Last)
	if err == nil && from > to {
		err = ErrNothingToReplay
	}
	return from, to, err
}

// change runs a script that changes something for a client, or says why not. It returns its first
// result.
func (r *Replays) change(ctx context.Context, what string, script *rdb.Script, args ...any) (first string, err error) {
	change := r.redis.Change(ctx, script, args...)
	if change.Err == nil && !change.Changed {
		return "", cmp.Or(replayRefusals[change.Text(0)], fmt.Errorf("%s: refused for an unknown reason %q", what, change.Text(0)))
	}
	return change.Text(0), rdb.Wrap(what, change.Err)
}

// List returns the replays of a subscriber that are kept, newest first. It fails with
// [bus.ErrUnavailable].
func (r *Replays) List(ctx context.Context, token bus.Token) (all []Replay, err error) {
	ids, err := r.redis.SMembers(ctx, r.keys.Replays(token)).Result()
	if !rdb.Answered(err) {
		return nil, rdb.Wrap("list replays", err)
	}
	all, err = r.read(ctx, "list replays", ids)
	slices.SortFunc(all, func(a, b Replay) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(string(a.ID), string(b.ID)))
	})
	return all, err
}

// read returns the replays that exist.
func (r *Replays) read(ctx context.Context, what string, ids []string) (found []Replay, err error) {
	hashes := make([]rdb.Reply[map[string]string], len(ids))
	err = r.redis.Reads(ctx, what, func(pipe rdb.Commands) {
		for i, id := range ids {
			hashes[i] = pipe.HGetAll(ctx, r.keys.Replay(bus.ReplayID(id)))
		}
	})
	for i, id := range ids {
		if replay, ok := parseReplay(id, hashes[i].Val()); ok {
			found = append(found, replay)
		}
	}
	return found, err
}

// Cancel ends a replay of a subscriber: nothing more is copied, and copied events are delivered. It
// reports whether the replay was running until now. It fails with [ErrReplayUnknown] or
// [bus.ErrUnavailable].
func (r *Replays) Cancel(ctx context.Context, token bus.Token, id bus.ReplayID) (ran bool, err error) {
	return r.end(ctx, token, id, ReplayCancelled, "")
}

// end ends a replay of a subscriber, of any if the token is empty.
func (r *Replays) end(ctx context.Context, token bus.Token, id bus.ReplayID, state ReplayState, why string) (ran bool, err error) {
	first, err := r.change(ctx, "end replay", scriptReplayEnd, string(token), string(id), string(state), why)
	return first == "1", err
}
