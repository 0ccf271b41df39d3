package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptHistoryRead   = newScript("history_read")
	scriptHistoryTrim   = newScript("history_trim")
	scriptHistoryOldest = newScript("history_oldest")
)

// The scripts that change something for a client.
var (
	scriptHistoryPut    = newScript("history_put")
	scriptHistoryDelete = newScript("history_delete")
)

// ErrNoHistory means that the topic keeps no history.
var ErrNoHistory = errors.New("the topic keeps no history")

// historyRefusals are the scripts' words for why they changed, or found, nothing.
var historyRefusals = map[string]error{
	"topic unknown": bus.ErrTopicUnknown, "topic claimed": bus.ErrTopicClaimed, "no history": ErrNoHistory,
}

// HistoryField is the field of [layout.Keys.Plans] that is there while a topic keeps a history.
func HistoryField(name bus.TopicName) string { return "/" + string(name) }

// History keeps events of topics for later readers, within limits that each topic's publisher sets.
// It is off by default. A publish appends to it, in the same step that queues its events:
// lua/lib/histories.lua. It is safe for concurrent use.
//
// An event has a position in its topic: 1 for the first that the topic ever received. Positions in
// a history have no gaps.
type History struct {
	store *Store
	redis *rdb.Partition
	keys  layout.Keys
}

// NewHistory returns the histories in a store.
func NewHistory(st *Store) *History {
	return &History{st, st.Partition(), layout.Keys{Namespace: st.Partition().Namespace()}}
}

// HistoryLimits bounds a history, which keeps the newest events that all of the limits allow. 0 is
// no limit; [NewHistoryLimits] returns valid limits.
type HistoryLimits struct {
	Events int64
	// Age is how long ago an event may have been received, in whole ms.
	Age time.Duration
	// Bytes is the size of the packed events, with 8 more for each.
	Bytes int64
}

// The bounds of limits. Ages are in ms.
const (
	maxEvents        = 10_000_000
	minAge, maxAge   = 1000, 30 * 24 * 3600 * 1000
	minSize, maxSize = 1000, 1_000_000_000
)

// NewHistoryLimits returns limits; nil means no limit, and age is in ms. It fails with a
// [bus.Invalid] that points to the limit that is out of range, or says that a limit is required.
func NewHistoryLimits(events, age, bytes *int64) (l HistoryLimits, err error) {
	var ms int64
	for _, limit := range []struct {
		pointer         string
		wanted          *int64
		lowest, highest int64
		into            *int64
	}{
		{"/events", events, 1, maxEvents, &l.Events}, {"/age", age, minAge, maxAge, &ms}, {"/bytes", bytes, minSize, maxSize, &l.Bytes},
	} {
		if limit.wanted == nil {
			continue
		}
		if *limit.wanted < limit.lowest || *limit.wanted > limit.highest {
			return l, bus.Invalidf(limit.pointer, "must be %d to %d", limit.lowest, limit.highest)
		}
		*limit.into = *limit.wanted
	}
	l.Age = time.Duration(ms) * time.Millisecond
	if l == (HistoryLimits{}) {
		return l, bus.Invalidf("", "needs at least one of events, age and bytes: a history without limits would fill the bus")
	}
	return l, nil
}

// argument is a limit for a script; empty if there is none.
func argument(limit int64) any {
	if limit == 0 {
		return ""
	}
	return limit
}

// Put starts a history of a topic with the next event, or changes the limits of an existing one:
// events beyond the limits are removed within seconds. The client by is the topic's publisher, or
// root if empty. It fails with [bus.ErrTopicUnknown], [bus.ErrTopicClaimed] or
// [bus.ErrUnavailable].
func (h *History) Put(ctx context.Context, topic bus.TopicName, by bus.Token, l HistoryLimits, now time.Time) error {
	return h.change(ctx, "keep a history", topic, scriptHistoryPut,
		string(topic), string(by), now.UnixMilli(), argument(l.Events), argument(l.Age.Milliseconds()), argument(l.Bytes))
}

// Delete removes the history of a topic, which keeps none from now on. It asks as [History.Put]
// does, and fails with [bus.ErrTopicUnknown], [bus.ErrTopicClaimed], [ErrNoHistory] or
// [bus.ErrUnavailable].
func (h *History) Delete(ctx context.Context, topic bus.TopicName, by bus.Token) error {
	return h.change(ctx, "remove a history", topic, scriptHistoryDelete, string(topic), string(by))
}

func (h *History) change(ctx context.Context, what string, topic bus.TopicName, script *rdb.Script, args ...any) error {
	if topic.Validate() != nil { // a topic of the Ruby original may be named like another key
		return bus.ErrTopicUnknown
	}
	change := h.store.redis.Change(ctx, script, args...)
	if change.Err == nil && !change.Changed {
		return historyRefused(what, change.Text(0))
	}
	return rdb.Wrap(what, change.Err)
}

// historyRefused is the error for a word of a script.
func historyRefused(what, word string) error {
	if err, known := historyRefusals[word]; known {
		return err
	}
	return fmt.Errorf("%s: refused for an unknown reason %q", what, word)
}

// HistoryStatus describes a history.
type HistoryStatus struct {
	Limits HistoryLimits
	// First is the position of the oldest event, Last the position of the newest. If the history is
	// empty, First is the next position, and Last the one before it.
	First, Last int64
	// OldestAt is when the oldest event was received; zero if there is none.
	OldestAt time.Time
	// Events and Bytes are the numbers of events and bytes stored.
	Events, Bytes int64
}

// Get returns the status of a topic's history. It fails with [bus.ErrTopicUnknown], [ErrNoHistory]
// or [bus.ErrUnavailable].
func (h *History) Get(ctx context.Context, topic bus.TopicName) (s HistoryStatus, err error) {
	if topic.Validate() != nil {
		return s, bus.ErrTopicUnknown
	}
	var exists, keeps rdb.Reply[bool]
	var noted rdb.Reply[map[string]string]
	var length rdb.Reply[int64]
	var oldest rdb.Reply[string]
	err = h.redis.Transaction(ctx, "show a history", func(pipe rdb.Commands) {
		exists = pipe.SIsMember(ctx, h.keys.Topics(), string(topic))
		keeps = pipe.HExists(ctx, h.keys.Plans(), HistoryField(topic))
		noted = pipe.HGetAll(ctx, h.keys.HistoryLimits(topic))
		length = pipe.LLen(ctx, h.keys.History(topic))
		oldest = pipe.LIndex(ctx, h.keys.History(topic), 0)
	})
	switch {
	case err != nil:
		return s, err
	case !exists.Val():
		return s, bus.ErrTopicUnknown
	case !keeps.Val() || noted.Val()["first"] == "":
		return s, ErrNoHistory
	}
	number := func(field string) int64 { return rdb.Integer(noted.Val()[field], 0) }
	s = HistoryStatus{
		Limits: HistoryLimits{number("events"), time.Duration(number("age")) * time.Millisecond, number("bytes")},
		First:  number("first"), Last: number("first") + length.Val() - 1, Events: length.Val(), Bytes: number("size"),
	}
	if oldest.Err() == nil {
		s.OldestAt = time.UnixMilli(receivedAt(oldest.Val()))
	}
	return s, nil
}

// Topics returns the topics that keep a history, in no order.
func (h *History) Topics(ctx context.Context) (topics []bus.TopicName, err error) {
	fields, err := h.redis.HKeys(ctx, h.keys.Plans()).Result()
	for _, field := range fields {
		if topic, ok := strings.CutPrefix(field, "/"); ok {
			topics = append(topics, bus.TopicName(topic))
		}
	}
	return topics, rdb.Wrap("list histories", err)
}
