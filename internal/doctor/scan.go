package doctor

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// scan is what a run has read. Nothing in it is certain while the bus runs.
type scan struct {
	redis *rdb.Partition
	keys  store.Keys // with the namespace, which other keys here do not have
	jobs  queue.Keys // likewise

	// elements are what sets, sorted sets and hashes have, with scores and values, by key. What
	// queues have, and the index of batches, is in queues.
	elements map[string]map[string]string
	queues   map[bus.Queue]*queueScan
	newest   float64 // when the newest batch known was created (ms)

	notUIDs map[string]bool     // what the index of batches has beside UIDs
	strange map[string]bool     // keys that are not of their type, or that the layout does not know
	unknown map[string][]string // fields that the layout does not know, quoted, by key
	tokens  map[string]string   // one copy of each token of a batch
}

func newScan(partition *rdb.Partition) *scan {
	namespace := partition.Namespace()
	s := &scan{
		redis: partition, keys: store.Keys{Namespace: namespace}, jobs: queue.Keys{Namespace: namespace},
		elements: map[string]map[string]string{}, queues: map[bus.Queue]*queueScan{},
		notUIDs: map[string]bool{}, strange: map[string]bool{}, unknown: map[string][]string{},
		tokens: map[string]string{},
	}
	for _, q := range bus.Queues {
		s.queues[q] = &queueScan{map[string]entry{}, map[string][]string{}}
	}
	return s
}

// has reports whether a key was seen to have an element.
func (s *scan) has(key, element string) bool {
	_, ok := s.elements[key][element]
	return ok
}

// each iterates over the keys that begin with a prefix: what follows that, and their elements.
func (s *scan) each(prefix string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for key, elements := range s.elements {
			if of, ok := strings.CutPrefix(key, prefix); ok && !yield(of, elements) {
				return
			}
		}
	}
}

// read reads everything once. What lists other things comes before them, so that most of what is
// being delivered meanwhile is seen in the end as it was at first: not at all. Jobs that are
// scheduled become instant, and then pending, so they are read in this order: one is rather seen
// twice than not at all.
func (s *scan) read(ctx context.Context) error {
	first := []string{
		keys.Tokens(), keys.Rotations(), keys.Subscribers(), keys.Topics(), keys.BatchGauge(),
		keys.EventGauge(), keys.BatchesIndex(),
	}
	for _, q := range bus.Queues {
		first = append(first, jobs.PendingIndex(q), jobs.JobsIndex(q), jobs.Scheduled(q))
	}
	for _, key := range first {
		kind := singles[key]
		if err := s.redis.EachPage(ctx, s.full(key), kind, 0, rdb.Elements(kind, s.taker(key))); err != nil {
			return err
		}
	}
	for q, queue := range s.queues {
		if _, err := s.readInstant(ctx, q, queue.takeInstant); err != nil {
			return err
		}
	}
	return s.redis.EachKey(ctx, s.full("*"), func(page []string) error { return s.readKeys(ctx, page) })
}

// taker returns what takes in the elements of a key.
func (s *scan) taker(key string) func(element, value string) {
	if key == keys.BatchesIndex() {
		return s.takeIndexed
	}
	for q, queue := range s.queues {
		switch key {
		case jobs.JobsIndex(q):
			return queue.takeListed
		case jobs.Scheduled(q):
			return queue.takeScheduled
		}
	}
	f, _ := familyOf(key)
	return func(element, value string) {
		if f.fields != nil && !slices.Contains(f.fields, element) {
			s.unknown[key] = append(s.unknown[key], strconv.Quote(element))
			return
		}
		if s.elements[key] == nil {
			s.elements[key] = map[string]string{}
		}
		if element == "last_event" { // which may be large
			value = ""
		}
		s.elements[key][element] = value
	}
}

// readKeys reads keys in one round trip, and more for the large ones among them.
func (s *scan) readKeys(ctx context.Context, names []string) error {
	takes := make([]func() error, len(names))
	err := s.redis.Reads(ctx, "scan", func(pipe rdb.Commands) {
		for i, key := range names {
			takes[i] = s.ask(ctx, pipe, key)
		}
	})
	if err != nil {
		return err
	}
	for i, take := range takes {
		if err := take(); rdb.HasCode(err, "WRONGTYPE") {
			s.strange[s.short(names[i])] = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// ask asks for what is to be known of a key. It returns what takes in the reply.
func (s *scan) ask(ctx context.Context, pipe rdb.Commands, key string) (take func() error) {
	short := s.short(key)
	switch f, of := familyOf(short); {
	case f.single:
		return func() error { return nil } // it was read, or does not matter
	case f.kind == "":
		return func() error { s.strange[short] = true; return nil }
	case f.list != nil:
		values, length := pipe.LRange(ctx, key, f.from, f.to), pipe.LLen(ctx, key)
		return func() error {
			if len(values.Val()) > 0 && length.Val() > 0 { // else it is gone since the scan
				f.list(s, of, values.Val(), length.Val())
			}
			return length.Err()
		}
	case f.unread:
		kind := pipe.Type(ctx, key)
		return func() error {
			if is := kind.Val(); is != string(f.kind) && is != "none" {
				s.strange[short] = true
			}
			return kind.Err()
		}
	default:
		first, each := rdb.Page(ctx, pipe, key, f.kind, 0), rdb.Elements(f.kind, s.taker(short))
		return func() error {
			page, cursor, err := first.Result()
			if err == nil {
				err = each(page)
			}
			if err != nil || cursor == 0 {
				return err
			}
			return s.redis.EachPage(ctx, key, f.kind, cursor, each)
		}
	}
}

// takeIndexed takes in an entry of the batches' index. A time of creation that is said to be of the
// future does not count.
func (s *scan) takeIndexed(bid, score string) {
	if !bus.IsUID(bid) {
		s.notUIDs[bid] = true
		return
	}
	s.queues[bus.QueueMain].note(jobOf(bid), func(e *entry) { e.indexed = true })
	if created, err := strconv.ParseFloat(score, 64); err == nil {
		s.newest = max(s.newest, min(created, float64(time.Now().UnixMilli())))
	}
}

// holder is the token that a batch's subscriber has now, one copy for all of its batches.
func (s *scan) holder(token string) string {
	token = cmp.Or(s.elements[keys.Rotations()][token], token)
	if _, ok := s.tokens[token]; !ok {
		s.tokens[token] = token
	}
	return s.tokens[token]
}

// full is a key with its namespace, short one without.
func (s *scan) full(key string) string  { return s.redis.Namespace() + key }
func (s *scan) short(key string) string { return strings.TrimPrefix(key, s.redis.Namespace()) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// queueScan is what was read of a queue.
type queueScan struct {
	entries map[string]entry    // by packed job
	pending map[string][]string // jobs, by worker
}

// entry is a job and, if it delivers one, its batch: one can be there without the other.
type entry struct {
	// Where the job was seen: in the index, among the scheduled jobs, with so many workers, and so
	// often in the list of instant jobs.
	listed, scheduled bool
	pending, instant  uint16
	due               float64 // when it is scheduled (ms)

	// The batch: its list is there; its header is none; it is in the index; it is, also, the Ruby
	// original's.
	there, broken, indexed, original bool
	token                            string
	created, events                  int64
}

// states is in how many states the job is.
func (j entry) states() int {
	states := int(j.pending) + int(j.instant)
	if j.scheduled {
		states++
	}
	return states
}

// fits reports whether nothing is wrong with an entry. What is the Ruby original's fits.
func (j entry) fits(isBatch bool) bool {
	batchFits := j.there && j.indexed && !j.broken && !j.empty()
	return j.original || j.listed && j.states() == 1 && (batchFits || !isBatch)
}

// empty reports whether a batch is for nobody, or has no event.
func (j entry) empty() bool { return j.token == "" || j.events == 0 }

// batch is the entry of a batch.
func (s *scan) batch(bid string) entry { return s.queues[bus.QueueMain].entries[jobOf(bid)] }

func (q *queueScan) note(packed string, change func(*entry)) {
	j := q.entries[packed]
	change(&j)
	q.entries[packed] = j
}

func (q *queueScan) takeListed(packed, _ string) { q.note(packed, func(j *entry) { j.listed = true }) }

func (q *queueScan) takeScheduled(packed, score string) {
	q.note(packed, func(j *entry) {
		j.scheduled = true
		j.due, _ = strconv.ParseFloat(score, 64) // Redis wrote it
	})
}

func (q *queueScan) takeInstant(packed string, _ int64) {
	q.note(packed, func(j *entry) { j.instant++ })
}

// takePending takes in a worker's pending jobs.
func (s *scan) takePending(of string, jobs []string, _ int64) {
	name, worker, _ := strings.Cut(of, ":")
	q := s.queues[bus.Queue(name)]
	if _, seen := q.pending[worker]; seen { // a scan may return a key twice
		return
	}
	q.pending[worker] = jobs
	for _, packed := range jobs {
		q.note(packed, func(j *entry) { j.pending++ })
	}
}

// takeBatch takes in the header of a batch, and how long its list is.
func (s *scan) takeBatch(bid string, header []string, length int64) {
	s.queues[bus.QueueMain].note(jobOf(bid), func(j *entry) {
		j.there, j.token, j.events = true, s.holder(header[0]), max(0, length-store.BatchHeader)
		if !j.empty() {
			created, err1 := strconv.ParseUint(header[1], 10, 63)
			_, err2 := strconv.ParseUint(header[2], 10, 63)
			j.created, j.broken = int64(created), err1 != nil || err2 != nil
		}
	})
}

func (s *scan) takeOldTraceparents(bid string, _ []string, _ int64) {
	s.elements[oldTraceparents+bid] = nil
}

func (s *scan) takeOriginal(bid string, header []string, _ int64) {
	s.queues[bus.QueueMain].note(jobOf(bid), func(j *entry) { j.original, j.token = true, s.holder(header[0]) })
}

// readInstant reads a queue's list of instant jobs from left to right. Jobs enter at the left
// meanwhile and leave at the right, so one that stays is not missed; one that is shifted into the
// next slice is met again there, after the last one of the slice before. It returns how many jobs
// it has read.
func (s *scan) readInstant(ctx context.Context, q bus.Queue, take func(packed string, index int64)) (int64, error) {
	last := ""
	for from := int64(0); ; {
		slice, err := s.redis.LRange(ctx, s.jobs.Instant(q), from, from+rdb.ElementsPerTrip-1).Result()
		if err != nil || len(slice) == 0 {
			return from, err
		}
		known := slices.Index(slice, last) + 1
		for i, packed := range slice[known:] {
			take(packed, from+int64(known+i))
		}
		if len(slice) < rdb.ElementsPerTrip {
			return from + int64(len(slice)), nil
		}
		last = slice[len(slice)-1]
		from += rdb.ElementsPerTrip - 1 // that one comes again
	}
}

// jobOf is the job that delivers a batch, as this program stores it.
func jobOf(bid string) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{bid}})
}

// batchOf is the batch that a job of a queue delivers, empty if it does something else. A job that
// cannot be read, or would deliver a batch but is not where, or not as, this program writes it, is
// not ours.
func batchOf(q bus.Queue, packed string) (bid string, ours bool) {
	if at := len(packed) - bus.UIDLen; q == bus.QueueMain && at > 0 {
		if bid := packed[at:]; bus.IsUID(bid) && packed == jobOf(bid) {
			return bid, true
		}
	}
	job, err := wire.UnpackJob(packed)
	return "", err == nil && job.Name != bus.JobBatch
}
