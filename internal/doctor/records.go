package doctor

import (
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Record is what was read of a job's record.
type Record struct {
	Type, Status string
	// Shared is where the data is that the job shares; empty for its own.
	Shared string
	// Sequence and ArchivedAt are in µs; the latter is 0 for a job that has not ended.
	Sequence, ArchivedAt int64
	// Noted is how many bytes it has that say why attempts failed.
	Noted int64
}

var recordFields = []string{"type", "status", "sequence", "archived_at", "data", "noted"}

// takeRecord takes in a job's record. One that is gone meanwhile has no field.
func (s *Scan) takeRecord(id string, values []any) {
	if len(values) != len(recordFields) || values[0] == nil && values[1] == nil && values[2] == nil {
		return
	}
	text := func(i int) string { return s.once(rdb.Text(values[i])) }
	s.Records[id] = Record{
		Type: text(0), Status: text(1), Shared: text(4),
		Sequence: rdb.Integer(rdb.Text(values[2]), 0), ArchivedAt: rdb.Integer(rdb.Text(values[3]), 0),
		Noted: rdb.Integer(rdb.Text(values[5]), 0),
	}
}

// EntryOf is the entry of a job in its queue.
func EntryOf(id string) string { return wire.PackJob(bus.Job{Name: bus.JobJob, Args: []string{id}}) }

// JobIn is the id of the job that an entry of a queue is about; empty if it is about something
// else.
func JobIn(q bus.Queue, packed string) string {
	if q != bus.QueueJobs {
		return ""
	}
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobJob || len(job.Args) != 1 || EntryOf(job.Args[0]) != packed {
		return ""
	}
	return job.Args[0]
}
