package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// The limits of one round trip, and of one step of [History.DropOldest].
const (
	topicsPerTrip         = 100
	historyDroppedPerStep = 1000
)

// DroppedHistory is how many events were removed from the histories of topics.
type DroppedHistory map[bus.TopicName]int

// Events returns their total.
func (d DroppedHistory) Events() (total int) {
	for _, events := range d {
		total += events
	}
	return total
}

// Add adds the events of other.
func (d DroppedHistory) Add(other DroppedHistory) {
	for topic, events := range other {
		d[topic] += events
	}
}

// Trim removes events beyond their limits from all histories, as of a time: publishes do not remove
// events that grow too old while a topic is idle, nor more than one step has time for. It takes
// steps while goesOn returns true, and returns what it has removed, also with an error. It skips
// histories that cannot be read: doctor repairs them. It fails with [bus.ErrUnavailable].
func (h *History) Trim(ctx context.Context, now time.Time, goesOn func() bool) (trimmed DroppedHistory, err error) {
	trimmed = DroppedHistory{}
	topics, err := h.Topics(ctx)
	for some := range slices.Chunk(topics, topicsPerTrip) {
		for err == nil && len(some) > 0 {
			if !goesOn() {
				return trimmed, nil
			}
			some, err = h.trim(ctx, some, now, trimmed)
		}
	}
	return trimmed, err
}

// trim takes one step for each topic, and returns the topics that are not done.
func (h *History) trim(ctx context.Context, topics []bus.TopicName, now time.Time, trimmed DroppedHistory) (left []bus.TopicName, err error) {
	calls := make([]rdb.Call, len(topics))
	for i, topic := range topics {
		calls[i] = scriptHistoryTrim.Call(string(topic), now.UnixMilli(), 0)
	}
	for i, result := range h.redis.RunAll(ctx, calls...) {
		reply, err := result.List()
		if !rdb.Answered(err) {
			return nil, rdb.Wrap("trim histories", err)
		}
		if err != nil {
			continue
		}
		trimmed.note(topics[i], reply)
		if reply[1] == int64(1) {
			left = append(left, topics[i])
		}
	}
	return left, nil
}

// note adds the events that a script has removed.
func (d DroppedHistory) note(topic bus.TopicName, reply []any) {
	if events, _ := reply[0].(int64); events > 0 {
		d[topic] += int(events)
	}
}

// DropOldest drops some of the oldest events of all histories, to free memory, and returns them by
// topic. It allocates no memory. It returns none when no other event is left, or none that can be
// read. It fails with [bus.ErrUnavailable].
func (h *History) DropOldest(ctx context.Context, now time.Time) (DroppedHistory, error) {
	dropped := DroppedHistory{}
	topics, err := h.byAge(ctx)
	for _, topic := range topics {
		reply, err := h.redis.Run(ctx, scriptHistoryTrim, string(topic), now.UnixMilli(), historyDroppedPerStep).List()
		if !rdb.Answered(err) {
			return dropped, rdb.Wrap("drop history", err)
		}
		if err == nil {
			dropped.note(topic, reply)
		}
		if len(dropped) > 0 {
			break
		}
	}
	return dropped, err
}

// byAge returns the topics whose histories have events, the one with the oldest first.
func (h *History) byAge(ctx context.Context) (topics []bus.TopicName, err error) {
	all, err := h.Topics(ctx)
	oldest := map[bus.TopicName]int64{}
	for some := range slices.Chunk(all, topicsPerTrip) {
		args := make([]any, len(some))
		for i, topic := range some {
			args[i] = string(topic)
		}
		times, err := h.redis.Run(ctx, scriptHistoryOldest, args...).List()
		if err != nil {
			return nil, rdb.Wrap("drop history", err)
		}
		for i, ms := range times {
			if ms, ok := ms.(int64); ok {
				oldest[some[i]] = ms
				topics = append(topics, some[i])
			}
		}
	}
	slices.SortFunc(topics, func(a, b bus.TopicName) int { return cmp.Compare(oldest[a], oldest[b]) })
	return topics, err
}
