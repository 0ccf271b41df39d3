package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// How much a relay carries at most. One event more may have any size.
const (
	maxRelayed = 1000
	maxBytes   = 1 << 20
)

// Head is the head of an outbox, to be relayed: the [queue.Payload] of a relay's job.
type Head struct {
	To rdb.Number
	// UID is the same each time the same events are taken.
	UID    string
	Events []wire.PackedEvent
	// of identifies the home's count of events, and before is how many events had ever been carried to
	// the partition before these. Together they say for which subscriptions the events are.
	of     string
	before int64
}

// LaneStanding is part of [queue.Payload].
func (h *Head) LaneStanding() bus.Standing { return bus.Proven }

// Owners is part of [queue.Payload]: relays go to the bus itself.
func (h *Head) Owners() []queue.Owner { return nil }

// LogAttrs is part of [queue.Payload].
func (h *Head) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("to_partition", h.To.String()), slog.Int("events", len(h.Events))}
}

// The results of a relay, as in lua/lib/relays.lua: its events have arrived, or they would open too
// many batches at once.
const arrived, tooLarge = "arrived", "too large"

// outcome is the [queue.Result].Detail of a relay's task.
type outcome struct {
	word string
	Arrival
}

// ReceivedByRelay returns how many events each subscriber got by the relay with this result.
func ReceivedByRelay(r queue.Result) map[bus.Token]int {
	came, _ := r.Detail.(outcome)
	return came.Received
}

// RelayKind returns relays as a kind of the queue's entries. A result must always have a time to
// retry: the job is removed when its outbox is found empty.
func RelayKind() queue.Kind { return relayKind{} }

type relayKind struct{}

// Name is part of [queue.Kind].
func (relayKind) Name() bus.JobName { return bus.JobRelay }

// Library is part of [queue.Kind].
func (relayKind) Library() rdb.Library {
	return rdb.Library{Outboxes, lua("lib/relays")}
}

// MaxInFlight is part of [queue.Kind]: an outbox has one job.
func (relayKind) MaxInFlight() int { return 0 }

// Settings is part of [queue.Kind].
func (relayKind) Settings(context.Context) []any {
	return []any{string(bus.NewBatchID()), maxRelayed, maxBytes}
}

// Payload is part of [queue.Kind]: it reads the reply of RELAY.take in lua/lib/relays.lua.
func (relayKind) Payload(job bus.Job, values []any) (queue.Payload, error) {
	number, err := strconv.Atoi(job.Args[0])
	if err != nil {
		return nil, fmt.Errorf("take relay: %w", err)
	}
	if len(values) < 2 {
		return nil, fmt.Errorf("take relay: unexpected reply of a script: %v", values)
	}
	id, before, _ := strings.Cut(rdb.Text(values[1]), " ")
	head := &Head{To: rdb.Number(number), UID: rdb.Text(values[0]), of: id, before: rdb.Integer(before, 0)}
	for _, event := range values[2:] {
		head.Events = append(head.Events, wire.PackedEvent(rdb.Text(event)))
	}
	return head, nil
}

// Discarded is part of [queue.Kind]: it discards without a word.
func (relayKind) Discarded([]any) any { return nil }

// Result is part of [queue.Kind].
func (relayKind) Result(payload queue.Payload, detail any) []any {
	came, _ := detail.(outcome)
	return []any{payload.(*Head).UID, came.word}
}
