package doctor

import (
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Label is a label's scanned record.
type Label struct {
	State string
	// There: there is a record.
	There, Deleted, Asked, Errored bool
	// Triggered: a worker was looking at it for a trigger, or is to look at it once more.
	Triggered bool
	// By is the client that has made it; empty for a label of before there were accounts. Moves is how
	// many it has made.
	By    string
	Moves int64
}

var labelFields = []string{"state", "deleted_at", "asked", "errored_at", "trigger", "by", "moves"}

// takeLabel stores the record of a label. Without a state and a deletion there is no record.
func (s *Scan) takeLabel(id string, values []any) {
	if len(values) != len(labelFields) || values[0] == nil && values[1] == nil {
		return
	}
	s.Labels[id] = Label{
		State: s.once(rdb.Text(values[0])), There: true,
		Deleted: values[1] != nil, Asked: values[2] != nil, Errored: values[3] != nil, Triggered: values[4] != nil,
		By: s.once(rdb.Text(values[5])), Moves: rdb.Integer(rdb.Text(values[6]), 0),
	}
}

// Outbox holds the moves of a machine that wait to be published.
type Outbox struct {
	// Next are the oldest of them, which are published next.
	Next   []string
	Length int64
}

// NextMoves is how many moves of an outbox are read: as many as are published at once.
const NextMoves = 100

// takeOutbox stores a machine's outbox.
func (s *Scan) takeOutbox(machine string, next []string, length int64) {
	s.Outboxes[machine] = Outbox{next, length}
}

// OutboxIn is the machine whose moves an entry of the queue publishes; empty if it is about
// something else.
func OutboxIn(packed string) (machine string) {
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobMoves || len(job.Args) != 2 {
		return ""
	}
	return job.Args[0]
}

// EntryOfLabel is the entry of a label in its queue.
func EntryOfLabel(id string) string {
	machine, name, _ := strings.Cut(id, "/")
	return wire.PackJob(bus.Job{Name: bus.JobLabel, Args: []string{machine, name}})
}

// LabelIn is the label that an entry of [EntryOfLabel] is about.
func LabelIn(packed string) (id string) {
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobLabel || len(job.Args) != 2 {
		return ""
	}
	return job.Args[0] + "/" + job.Args[1]
}
