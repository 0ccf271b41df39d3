package store

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// HistoryEntry is an event in a history.
type HistoryEntry struct {
	Position int64
	// ReceivedAt is when the bus received the event, in ms since the Unix epoch; never before
	// ReceivedAt of the previous entry.
	ReceivedAt int64
	Event      wire.PackedEvent
}

// stampLen is the number of bytes of the time that a stored entry begins with.
const stampLen = 8

// receivedAt reads when the event of a stored entry was received, in ms since the Unix epoch.
func receivedAt(stored string) int64 {
	if len(stored) < stampLen {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(stored[:stampLen])))
}

// HistorySlice is a part of a history.
type HistorySlice struct {
	// First and Last are the bounds of all of it, see [HistoryStatus].
	First, Last int64
	// Entries are in the order of their positions, without a gap.
	Entries []HistoryEntry
}

// maxRead is how many bytes of entries one call of [History.Read] reads, and at most a hundred
// entries more.
const maxRead = 4 << 20

// Read returns entries of a topic's history from a position on, or from its first if that is later:
// as many as the limit says, or fewer if they are large, but one at least if there is one. It fails
// with [bus.ErrTopicUnknown], [ErrNoHistory] or [bus.ErrUnavailable].
func (h *History) Read(ctx context.Context, topic bus.TopicName, from int64, limit int) (s HistorySlice, err error) {
	const what = "read a history"
	if topic.Validate() != nil {
		return s, bus.ErrTopicUnknown
	}
	reply, err := h.redis.Run(ctx, scriptHistoryRead, string(topic), from, limit, maxRead).List()
	if err != nil {
		return s, rdb.Wrap(what, err)
	}
	if len(reply) == 1 {
		return s, historyRefused(what, rdb.Text(reply[0]))
	}
	s.First, s.Last = reply[0].(int64), reply[1].(int64)
	stored := reply[3].([]any)
	s.Entries = make([]HistoryEntry, len(stored))
	for i, entry := range stored {
		text := rdb.Text(entry)
		event := wire.PackedEvent(text[min(stampLen, len(text)):])
		s.Entries[i] = HistoryEntry{reply[2].(int64) + int64(i), receivedAt(text), event}
	}
	return s, nil
}

// PositionAt returns the position of the first event of a topic's history that was received at
// since or later, or the position of the next event if there is none. It fails as [History.Read]
// does.
func (h *History) PositionAt(ctx context.Context, topic bus.TopicName, since time.Time) (int64, error) {
	// A bisection in one step would take too long in a list of millions. Events removed meanwhile are
	// older than the remaining ones.
	for low, high := int64(0), int64(math.MaxInt64); ; {
		s, err := h.Read(ctx, topic, low+(high-low)/2, 1)
		if err != nil {
			return 0, err
		}
		if high > s.Last+1 { // the bounds were not known yet, or it was made anew meanwhile
			low, high = s.First, s.Last+1
			continue
		}
		low = max(low, s.First)
		if low >= high {
			return max(high, s.First), nil
		}
		if entry := s.Entries[0]; entry.ReceivedAt < since.UnixMilli() {
			low = entry.Position + 1
		} else {
			high = min(high, entry.Position)
		}
	}
}
