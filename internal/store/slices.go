package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Basis is what the delivery of a batch depends on if its subscriber has options.
type Basis struct {
	// Version is the version of the options: see [Store.Options].
	Version string
	// Total is the number of events in the batch, even if only the first of them were read.
	Total int
	// Count is how many of its first events may be sent, at least 1.
	Count int
	// Revision counts the changes of the batch's content since it was closed.
	Revision int
	// Refusals is how often the endpoint refused the content.
	Refusals int
	// Suspect, if not 0, means that the endpoint refuses one of the first Suspect events.
	Suspect int
	// Test is whether the batch is a test event, which is tried once.
	Test bool
	// WebhookID signed the content when it was a dead letter, else empty.
	WebhookID string
	// Replay is the replay that the batch belongs to, or empty.
	Replay bus.ReplayID
	// Gap is whether the batch is a gap notice.
	Gap bool
}

// basisReply is the reply of slices().begin in lua/lib/slices.lua for a [Basis]: from Revision on
// the fields of the batch's state, each nil if it is missing.
type basisReply struct {
	Version, Total, Count, Revision, Refusals, Suspect, Test, WebhookID, Replay, Gap any
}

func readBasis(v []any) *Basis {
	reply := basisReply{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]}
	total, _ := reply.Total.(int64)
	count, _ := reply.Count.(int64)
	return &Basis{
		Version: rdb.Text(reply.Version), Total: int(total), Count: int(count), Revision: int(rdb.Integer(rdb.Text(reply.Revision), 0)),
		Refusals: int(rdb.Integer(rdb.Text(reply.Refusals), 0)), Suspect: int(rdb.Integer(rdb.Text(reply.Suspect), 0)),
		Test: rdb.Text(reply.Test) == "1", WebhookID: rdb.Text(reply.WebhookID), Replay: bus.ReplayID(rdb.Text(reply.Replay)),
		Gap: rdb.Text(reply.Gap) == "1",
	}
}

// Total is the number of events in the batch.
func (d *Delivery) Total() int {
	if d.Basis != nil {
		return d.Basis.Total
	}
	return len(d.Events)
}

// Removed returns how many events have left the queue with a result. Test events and gap notices
// were never counted.
func (d *Delivery) Removed(r queue.Result) int {
	switch {
	case d.Basis != nil && (d.Basis.Test || d.Basis.Gap):
		return 0
	case r.RetryAt.IsZero():
		return d.Total()
	}
	detail, _ := r.Detail.(DeliveryResult)
	return detail.Slice.removed()
}

// SliceResult is the result for a batch after the delivery of a slice of it.
type SliceResult struct {
	// KeepTurn means that a batch that stays keeps its turn in the lane.
	KeepTurn bool
	// UnusedPace is how long the next delivery would wait in vain, since fewer events were sent than
	// taken.
	UnusedPace time.Duration
	// Findings, unless nil, are the batch's from now on: see [Basis].
	Findings *Findings
	// Removed are the events that leave the batch: acknowledged, rejected, or dead. They are not all
	// of it.
	Removed Ranges
	// Lost is how many of them were rejected, and are no dead letter.
	Lost int
	// Letters are the dead letters. A letter with the UID of the batch takes all remaining events.
	Letters []DeadLetter
}

// Findings count what the refusals of a batch have shown: see [Basis].
type Findings struct{ Refusals, Suspect int }

// DeadLetter is events that died together.
type DeadLetter struct {
	ID     bus.BatchID
	Reason bus.DeathReason
	// Status is the status of the last answer, 0 if there was none; then Error says why.
	Status int
	Error  string
	// Note is the subscriber's, if it rejected the events.
	Note string
	// WebhookID signed the content.
	WebhookID string
	// Events are the events of the batch that died, unless all remaining events have.
	Events Ranges
}

// Ranges are indexes of events in their batch, in order.
type Ranges []Range

// Range is indexes from First to Last.
type Range struct{ First, Last int }

// RangesOf joins indexes, which are in order.
func RangesOf(indexes []int) (all Ranges) {
	for _, i := range indexes {
		if n := len(all); n > 0 && all[n-1].Last == i-1 {
			all[n-1].Last = i
			continue
		}
		all = append(all, Range{i, i})
	}
	return all
}

// Len is the number of indexes.
func (r Ranges) Len() (n int) {
	for _, some := range r {
		n += some.Last - some.First + 1
	}
	return n
}

// String returns the text that scripts read.
func (r Ranges) String() string {
	texts := make([]string, len(r))
	for i, some := range r {
		texts[i] = fmt.Sprintf("%d-%d", some.First, some.Last)
	}
	return strings.Join(texts, " ")
}

// removed is the number of events that leave the batch before it is complete, if it is.
func (r *SliceResult) removed() int {
	if r == nil {
		return 0
	}
	return r.Removed.Len()
}

// bytesLeft returns the size of the batch's remaining packed events after it is completed, which
// the gauges count; empty if only Redis knows, as not all events were read.
func (d *Delivery) bytesLeft(r *SliceResult) string {
	if len(d.Events) < d.Total() {
		return ""
	}
	bytes := 0
	for _, event := range d.Events {
		bytes += len(event)
	}
	if r != nil {
		for _, some := range r.Removed {
			for _, event := range d.Events[some.First : some.Last+1] {
				bytes -= len(event)
			}
		}
	}
	return strconv.Itoa(bytes)
}

// sliceArgs are the results that lua/lib/slices.lua reads: the first two of any subscriber, the
// others only of one with options.
type sliceArgs struct {
	Record     string // of the attempt; empty for none
	Records    int    // how many are kept
	UnusedPace int64  // ms
	KeepTurn   bool
	// Refusals and Suspect are empty to leave them as they are.
	Refusals, Suspect string
	Removed           string // see Ranges
	Lost              int
	Notice            string // the UID of a gap notice that reports them
}

func (a sliceArgs) list() []any {
	return []any{a.Record, a.Records, a.UnusedPace, a.KeepTurn, a.Refusals, a.Suspect, a.Removed, a.Lost, a.Notice}
}

// sliceArgs returns none if there is nothing to note.
func (r *DeliveryResult) sliceArgs() []any {
	if r.Slice == nil && len(r.Attempt) == 0 {
		return nil
	}
	fixed := sliceArgs{Record: string(r.Attempt), Records: r.AttemptsKept}
	if r.Slice == nil {
		return fixed.list()[:2]
	}
	if f := r.Slice.Findings; f != nil {
		fixed.Refusals, fixed.Suspect = fmt.Sprint(f.Refusals), fmt.Sprint(f.Suspect)
	}
	fixed.UnusedPace, fixed.KeepTurn = r.Slice.UnusedPace.Milliseconds(), r.Slice.KeepTurn
	fixed.Removed, fixed.Lost = r.Slice.Removed.String(), r.Slice.Lost
	if fixed.Lost > 0 {
		fixed.Notice = string(bus.NewBatchID())
	}
	args := fixed.list()
	for _, l := range r.Slice.Letters {
		args = append(args,
			string(l.ID), string(l.Reason), l.Status, l.Error, l.Note, l.WebhookID, l.Events.String())
	}
	return args
}
