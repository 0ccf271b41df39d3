package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// Queue is a scanned queue.
type Queue struct {
	Entries map[string]Entry    // by packed job
	Pending map[string][]string // jobs, by worker
}

// QueueNames returns the partition's queues: only a bus with partitions has relays.
func (s *Scan) QueueNames() []bus.Queue {
	if s.Redis.IsOneOfSeveral() {
		return append(bus.Queues[:], bus.QueueRelay)
	}
	return bus.Queues[:]
}

// Entry is a job and, if it delivers one, its batch: one can be there without the other.
type Entry struct {
	// Where the job was seen: in the index, among the scheduled jobs, with so many workers, and so
	// often in the list of instant jobs.
	Listed, Scheduled bool
	Pending, Instant  uint16
	Due               float64 // when it is scheduled (ms)

	// The batch: its list is there; its header is none; it is in the index; it is, also, the Ruby
	// original's.
	There, Broken, Indexed, Original bool
	Token                            string
	Created, Events                  int64
}

// States is in how many states the job is.
func (j Entry) States() int {
	states := int(j.Pending) + int(j.Instant)
	if j.Scheduled {
		states++
	}
	return states
}

// Fits reports whether an entry is undamaged. Entries of the Ruby original always fit.
func (j Entry) Fits(isBatch bool) bool {
	batchFits := j.There && j.Indexed && !j.Broken && !j.Empty()
	return j.Original || j.Listed && j.States() == 1 && (batchFits || !isBatch)
}

// Counts reports whether an entry's batch is in the gauges.
func (j Entry) Counts() bool { return j.There && !j.Broken && j.Token != "" }

// Empty reports whether a batch has no subscriber or no event.
func (j Entry) Empty() bool { return j.Token == "" || j.Events == 0 }

// Batch is the entry of a batch.
func (s *Scan) Batch(bid string) Entry { return s.Queues[bus.QueueMain].Entries[JobOf(bid)] }

func (q *Queue) note(packed string, change func(*Entry)) {
	j := q.Entries[packed]
	change(&j)
	q.Entries[packed] = j
}

func (q *Queue) takeListed(packed, _ string) { q.note(packed, func(j *Entry) { j.Listed = true }) }

func (q *Queue) takeScheduled(packed, score string) {
	q.note(packed, func(j *Entry) {
		j.Scheduled = true
		j.Due, _ = strconv.ParseFloat(score, 64) // Redis wrote it
	})
}

// takePending takes in a worker's pending jobs.
func (s *Scan) takePending(of string, jobs []string, _ int64) {
	name, worker, _ := strings.Cut(of, ":")
	q := s.Queues[bus.Queue(name)]
	if q == nil {
		return // of relays, on a bus without partitions
	}
	if _, seen := q.Pending[worker]; seen { // a scan may return a key twice
		return
	}
	q.Pending[worker] = jobs
	for _, packed := range jobs {
		q.note(packed, func(j *Entry) { j.Pending++ })
	}
}

// takeBatch takes in the header of a batch, and how long its list is.
func (s *Scan) takeBatch(bid string, header []string, length int64) {
	s.Queues[bus.QueueMain].note(JobOf(bid), func(j *Entry) {
		j.There, j.Token, j.Events = true, s.Holder(header[0]), max(0, length-store.BatchHeader)
		if !j.Empty() {
			created, err1 := strconv.ParseUint(header[1], 10, 63)
			_, err2 := strconv.ParseUint(header[2], 10, 63)
			j.Created, j.Broken = int64(created), err1 != nil || err2 != nil
		}
	})
}

func (s *Scan) takeOriginal(bid string, header []string, _ int64) {
	s.Queues[bus.QueueMain].note(JobOf(bid), func(j *Entry) { j.Original, j.Token = true, s.Holder(header[0]) })
}

// readInstant reads a queue's list of instant jobs from left to right. Jobs enter at the left
// meanwhile and leave at the right, so one that stays is not missed; one that is shifted into the
// next slice is met again there, after the last one of the slice before.
func (s *Scan) readInstant(ctx context.Context, q bus.Queue) error {
	last := ""
	for from := int64(0); ; from += rdb.ElementsPerTrip - 1 { // the last one comes again
		slice, err := s.Redis.LRange(ctx, s.Keys.Instant(q), from, from+rdb.ElementsPerTrip-1).Result()
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, packed := range slice[slices.Index(slice, last)+1:] {
			s.Queues[q].note(packed, func(j *Entry) { j.Instant++ })
		}
		if len(slice) < rdb.ElementsPerTrip {
			return nil
		}
		last = slice[len(slice)-1]
	}
}

// JobOf is the job that delivers a batch, as this program stores it.
func JobOf(bid string) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{bid}})
}

// BatchOf is the batch that a job of a queue delivers, empty if it does something else. A job that
// cannot be read, or would deliver a batch but is not where, or not as, this program writes it, is
// not ours.
func BatchOf(q bus.Queue, packed string) (bid string, ours bool) {
	if at := len(packed) - bus.UIDLen; q == bus.QueueMain && at > 0 {
		if bid := packed[at:]; bus.IsUID(bid) && packed == JobOf(bid) {
			return bid, true
		}
	}
	job, err := wire.UnpackJob(packed)
	return "", err == nil && job.Name != bus.JobBatch
}
