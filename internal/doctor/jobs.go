package doctor

import (
	"context"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// queueScan is a queue's jobs.
type queueScan struct {
	jobs map[string]job // by their bytes
	// registered are the workers in the index, holders those that have a list; with its length.
	registered map[string]bool
	holders    map[string]int
}

// job is where a job was seen: in the index, among the scheduled jobs, with so many workers, and so
// often in the list of instant jobs.
type job struct {
	listed, scheduled bool
	pending, instant  uint16
}

func newQueueScan() *queueScan {
	return &queueScan{map[string]job{}, map[string]bool{}, map[string]int{}}
}

// fits reports whether a job is in the index, and in exactly one state.
func (j job) fits() bool {
	states := int(j.pending) + int(j.instant)
	if j.scheduled {
		states++
	}
	return j.listed && states == 1
}

func (q *queueScan) note(packed string, change func(*job)) {
	j := q.jobs[packed]
	change(&j)
	q.jobs[packed] = j
}

// readQueue reads a queue, except for what workers have pending. Jobs that are scheduled become
// instant, so these are read last: a job is rather seen twice than not at all.
func (s *scan) readQueue(ctx context.Context, q bus.Queue, into *queueScan) error {
	err := s.redis.EachPage(ctx, s.jobs.PendingIndex(q), rdb.Set, 0, func(page []string) error {
		for _, worker := range page {
			into.registered[worker] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.redis.EachPage(ctx, s.jobs.JobsIndex(q), rdb.Set, 0, func(page []string) error {
		for _, packed := range page {
			into.note(packed, func(j *job) { j.listed = true })
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.redis.EachPage(ctx, s.jobs.Scheduled(q), rdb.SortedSet, 0, rdb.Pairs(func(packed, _ string) {
		into.note(packed, func(j *job) { j.scheduled = true })
	}))
	if err != nil {
		return err
	}
	return s.readInstant(ctx, q, into)
}

// readInstant reads the list of instant jobs from left to right. Jobs enter at the left meanwhile
// and leave at the right, so one that stays is not missed; one that is shifted into the next slice
// is met again there, after the last one of the slice before.
func (s *scan) readInstant(ctx context.Context, q bus.Queue, into *queueScan) error {
	last := ""
	for from := int64(0); ; {
		slice, err := s.redis.LRange(ctx, s.jobs.Instant(q), from, from+rdb.ElementsPerTrip-1).Result()
		if err != nil || len(slice) == 0 {
			return err
		}
		fresh := slice
		if i := slices.Index(slice, last); i >= 0 {
			fresh = slice[i+1:]
		}
		for _, packed := range fresh {
			into.note(packed, func(j *job) { j.instant++ })
		}
		if len(slice) < rdb.ElementsPerTrip {
			return nil
		}
		last = slice[len(slice)-1]
		from += rdb.ElementsPerTrip - 1 // that one comes again
	}
}

// takePending takes in a worker's pending jobs.
func (q *queueScan) takePending(worker string, jobs []string) {
	if _, seen := q.holders[worker]; seen || len(jobs) == 0 { // a scan may return a key twice
		return
	}
	q.holders[worker] = len(jobs)
	for _, packed := range jobs {
		q.note(packed, func(j *job) { j.pending++ })
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
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobBatch {
		return "", err == nil
	}
	if q == bus.QueueMain && len(job.Args) == 1 && isUID(job.Args[0]) && packed == jobOf(job.Args[0]) {
		return job.Args[0], true
	}
	return "", false
}

// batchRemedies are of batches, jobRemedies of jobs; {} is the queue.
var (
	batchRemedies = map[string]remedy{
		"unindexed": {"is not in " + store.Keys{}.BatchesIndex(), "added there"},
		"empty":     {"has no event, or no subscriber", "removed, with all that points to it"},
		"jobless":   {"has no job", "given one, to be run now"},
		"broken":    {"does not begin as a batch does", ""},
	}
	jobRemedies = map[string]remedy{
		"several": {"is in more than one place", "reduced to one"},
		"several_deep": {
			"is in more than one place, deep in a long queue: it is dropped as it comes up again", "",
		},
		"unlisted":  {"is not in " + queue.Keys{}.JobsIndex("{}"), "added there"},
		"stateless": {"is in " + queue.Keys{}.JobsIndex("{}") + ", but in no state", "made instant"},
		"job_gone":  {"is for a batch that is not there", "removed"},
		"job_gone_deep": {
			"is for a batch that is not there, deep in a long queue: it is dropped as it comes up", "",
		},
		"job_gone_pending": {
			"is for a batch that is not there, and a worker runs it: it goes when that is completed", "",
		},
	}
)

func (e *examination) checkJobs(ctx context.Context) error {
	for _, q := range bus.Queues {
		doubtful := e.doubtfulJobs(q)
		if len(doubtful) == 0 {
			continue
		}
		if err := e.pauseOnce(ctx); err != nil {
			return err
		}
		findings, err := e.askJobs(ctx, q, doubtful, e.fix)
		var deep []string
		for _, f := range findings {
			if isDeep(f.code) {
				deep = append(deep, f.job)
			} else {
				e.reportJob(q, f.job, f.code)
			}
		}
		if err == nil {
			err = e.checkDeep(ctx, q, deep)
		}
		if err != nil { // what was repaired before is reported
			return err
		}
	}
	return nil
}

// checkDeep looks once more at jobs that were seen deep in a long list: they may have left it
// before the script ran.
func (e *examination) checkDeep(ctx context.Context, q bus.Queue, jobs []string) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := e.doctor.pause(ctx); err != nil {
		return err
	}
	findings, err := e.askJobs(ctx, q, jobs, false)
	for _, f := range findings {
		if isDeep(f.code) {
			e.reportJob(q, f.job, f.code)
		}
	}
	return err
}

// jobFinding is what the script has found of a job.
type jobFinding struct{ job, code string }

// isDeep reports whether a finding is of a job in a list that is too long to be searched.
func isDeep(code string) bool { return strings.HasSuffix(code, "_deep") }

// doubtfulJobs returns the jobs of a queue that do not fit, or whose batches do not. Those that are
// not ours are reported.
func (e *examination) doubtfulJobs(q bus.Queue) (doubtful []string) {
	jobs := e.queues[q].jobs
	for packed, j := range jobs {
		bid, ours := batchOf(q, packed)
		switch b := e.batches[bid]; {
		case !ours:
			e.skip("job "+wire.ShowJob(packed), "in queue %s is not one that this program writes", q)
		case bid == "" && !j.fits(), bid != "" && !b.there && !b.original && !b.indexed:
			doubtful = append(doubtful, packed)
		}
	}
	if q == bus.QueueMain {
		for bid, b := range e.batches {
			switch packed := jobOf(bid); {
			case !isUID(bid):
				e.skip(e.keys.BatchesIndex(), "lists %q, which is no UID", bid)
			case b.there && (!b.indexed || b.events == 0 || b.token == "" || !jobs[packed].fits()),
				b.indexed && !b.there && !b.original:
				doubtful = append(doubtful, packed)
			}
		}
	}
	slices.Sort(doubtful)
	return doubtful
}

// lookAgain reads the list of instant jobs again, if it is too long for a script to search it;
// else it returns nil.
func (e *examination) lookAgain(ctx context.Context, q bus.Queue) (map[string]job, error) {
	length, err := e.redis.LLen(ctx, e.jobs.Instant(q)).Result()
	if err != nil || length <= int64(e.doctor.maxSearched) {
		return nil, err
	}
	again := newQueueScan()
	return again.jobs, e.readInstant(ctx, q, again)
}

// askJobs has the script look at jobs, and returns what it finds.
func (e *examination) askJobs(
	ctx context.Context, q bus.Queue, jobs []string, fix bool,
) (findings []jobFinding, err error) {
	instant, err := e.lookAgain(ctx, q)
	if err != nil {
		return nil, err
	}
	var unregistered []any
	for worker := range e.queues[q].holders {
		if !e.queues[q].registered[worker] {
			unregistered = append(unregistered, worker)
		}
	}
	for some := range slices.Chunk(jobs, scriptsPerTrip) {
		calls := make([]rdb.Call, len(some))
		for i, packed := range some {
			seen := -1
			if instant != nil {
				seen = int(instant[packed].instant)
			}
			args := []any{fix, string(q), packed, seen, e.doctor.maxSearched}
			calls[i] = scriptJob.Call(append(args, unregistered...)...)
		}
		for i, result := range e.redis.RunAll(ctx, calls...) {
			codes, err := result.Strings()
			if err := e.excuse("job "+wire.ShowJob(some[i]), err); err != nil {
				return findings, err
			}
			for _, code := range codes {
				findings = append(findings, jobFinding{some[i], code})
			}
		}
	}
	return findings, nil
}

func (e *examination) reportJob(q bus.Queue, packed, code string) {
	bid, _ := batchOf(q, packed)
	switch code {
	case "index_gone":
		e.found(e.keys.BatchesIndex(), "removed", "lists %s, which is not there", bid)
		return
	case "unseen": // the queue has become long meanwhile
		e.unchecked = append(e.unchecked, "job "+wire.ShowJob(packed))
		return
	}
	key, r := e.keys.Batch(bus.BatchID(bid)), batchRemedies[code]
	if r.problem == "" {
		key, r = "job "+wire.ShowJob(packed), jobRemedies[code]
	}
	if code == "broken" {
		delete(e.batches, bid)
	}
	e.found(key, r.done, "%s", strings.ReplaceAll(r.problem, "{}", string(q)))
}
