package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

const (
	// longestWhole is the longest list of instant jobs that the script reads whole.
	longestWhole = 1000
	// weightPerStep bounds what one step looks at; a place in a long list costs Redis the most.
	weightPerStep, weightOfPlace = 100, 5
	// jobRounds is how often what has moved meanwhile is looked for anew.
	jobRounds = 5
)

// noBatch tells of a list that is only named like a batch.
const noBatch = "is not a batch that the bus has written, so it is somebody else's"

// jobRulings tell of a job, or of the batch that it delivers; {} is the queue.
var jobRulings = map[string]ruling{
	"unindexed":        {"is not in " + Keys{}.BatchesIndex(), "added there"},
	"index_gone":       {"lists {}, which is not there", "removed"},
	"empty":            {"has no event, or no subscriber", "removed, with all that points to it"},
	"jobless":          {"has no job", "given one, to be run now"},
	"several":          {"is in more than one place", "reduced to one"},
	"several_deep":     {"is in more than one place, deep in a long queue: it is dropped as it comes up again", ""},
	"unlisted":         {"is not in " + queue.Keys{}.JobsIndex("{}"), "added there"},
	"stateless":        {"is in " + queue.Keys{}.JobsIndex("{}") + ", but in no state", "made instant"},
	"foreign":          {noBatch, ""},
	"foreign_listed":   {noBatch + ", though the bus lists it", ""},
	"job_gone":         {"is for a batch that is not there", "removed"},
	"job_gone_deep":    {"is for a batch that is not there, deep in a long queue: it is dropped as it comes up", ""},
	"job_gone_pending": {"is for a batch that is not there, and a worker runs it: it goes when that is settled", ""},
}

// jobOf is the job that delivers a batch, as this program stores it.
func jobOf(bid string) string { return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{bid}}) }

// batchOf is the batch that a job of a queue delivers, if it does. A job that cannot be read, or that would deliver a batch
// but is not where, or not as, this program writes it, is not ours.
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

func (j job) states() int {
	n := j.pending + len(j.instant)
	if j.scheduled {
		n++
	}
	return n
}

func (e *examination) checkJobs(ctx context.Context) error {
	for _, q := range bus.Queues {
		ours, foreign := e.doubtfulJobs(q)
		if err := e.checkJobsOf(ctx, q, ours, e.fix); err != nil {
			return err
		}
		if err := e.checkJobsOf(ctx, q, foreign, false); err != nil {
			return err
		}
	}
	return nil
}

// doubtfulJobs returns the jobs of a queue that may be wrong, or whose batches may be, and those that are not ours.
func (e *examination) doubtfulJobs(q bus.Queue) (ours, foreign []string) {
	jobs := e.queues[q].jobs
	for packed, j := range jobs {
		bid, is := batchOf(q, packed)
		switch b := e.batches[bid]; {
		case !is:
			foreign = append(foreign, packed)
		case bid == "" && (!j.listed || j.states() != 1), bid != "" && !b.there && !b.original && !b.indexed:
			ours = append(ours, packed)
		}
	}
	if q != bus.QueueMain {
		return ours, foreign
	}
	for bid, b := range e.batches {
		if !isUID(bid) {
			e.leave(e.keys.BatchesIndex(), "lists %q, which is no UID", bid)
			continue
		}
		packed := jobOf(bid)
		j := jobs[packed]
		if b.there && (!b.indexed || b.events == 0 || b.token == "" || !j.listed || j.states() != 1) || b.indexed && !b.there && !b.original {
			ours = append(ours, packed)
		}
	}
	return ours, foreign
}

func (e *examination) checkJobsOf(ctx context.Context, q bus.Queue, todo []string, fix bool) error {
	list := e.queues[q].instant
	var err error
	for round := 0; len(todo) > 0; round++ {
		if round == jobRounds {
			e.unchecked = append(e.unchecked, fmt.Sprintf("%d jobs of queue %s", len(todo), q))
			return nil
		}
		if round > 0 {
			list.forget()
			if err := list.extend(ctx); err != nil && !errors.Is(err, errMoved) {
				return rdb.Wrap("check", err)
			}
		}
		if todo, err = e.jobRound(ctx, q, e.rightmostFirst(q, todo), fix); err != nil {
			return err
		}
	}
	return nil
}

// rightmostFirst sorts jobs as the script wants them, and then by their bytes.
func (e *examination) rightmostFirst(q bus.Queue, todo []string) []string {
	jobs := e.queues[q].jobs
	place := func(packed string) int64 {
		if places := jobs[packed].instant; len(places) > 0 {
			return slices.Max(places)
		}
		return -1 << 62
	}
	slices.SortFunc(todo, func(a, b string) int {
		if pa, pb := place(a), place(b); pa != pb {
			if pa > pb {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return todo
}

// jobRound checks jobs, and returns those that were not where they had been seen.
func (e *examination) jobRound(ctx context.Context, q bus.Queue, todo []string, fix bool) (moved []string, err error) {
	list := e.queues[q].instant
	for lost := 0; len(todo) > 0; {
		if list.marker != "" || lost > 0 {
			if err := list.extend(ctx); errors.Is(err, errMoved) {
				return append(moved, todo...), nil
			} else if err != nil {
				return nil, rdb.Wrap("check", err)
			}
		}
		n := e.stepOf(q, todo)
		answers, err := e.askJobs(ctx, q, todo[:n], fix)
		if err != nil {
			return nil, err
		}
		if answers == nil { // the list has to be read first
			if lost++; lost > jobRounds {
				return append(moved, todo...), nil
			}
			continue
		}
		lost = 0
		var again []string
		for i, codes := range answers {
			switch packed := todo[i]; {
			case slices.Contains(codes, "again"):
				again = append(again, packed)
			case slices.Contains(codes, "moved"):
				moved = append(moved, packed)
			default:
				e.tellJob(q, packed, codes)
			}
		}
		todo = append(again, todo[n:]...)
	}
	return moved, nil
}

// stepOf returns how many of the jobs one step may check.
func (e *examination) stepOf(q bus.Queue, todo []string) int {
	weight := 0
	for i, packed := range todo {
		if weight += 1 + weightOfPlace*len(e.queues[q].jobs[packed].instant); weight > weightPerStep && i > 0 {
			return i
		}
	}
	return len(todo)
}

// askJobs has the script check jobs. It returns nil when the list of instant jobs is to be read first.
func (e *examination) askJobs(ctx context.Context, q bus.Queue, jobs []string, fix bool) ([][]string, error) {
	queue := e.queues[q]
	args := []any{fix, string(q), 1, queue.instant.marker, longestWhole, 0}
	workers := 0
	for worker := range queue.holders {
		if !queue.registered[worker] {
			args = append(args, worker)
			workers++
		}
	}
	args[5] = workers
	for _, packed := range jobs {
		places := queue.jobs[packed].instant
		args = append(args, packed, len(places))
		for _, place := range places {
			args = append(args, place-queue.instant.place)
		}
	}
	reply, err := e.store.redis.Run(ctx, scriptCheckJob, args...).List()
	switch {
	case errors.Is(err, rdb.Nil):
		return nil, nil
	case err != nil && len(jobs) > 1 && rdb.Answered(err): // one of them is not of its type
		return e.askEach(ctx, q, jobs, fix)
	case err != nil:
		return make([][]string, len(jobs)), e.excuse(showJob(jobs[0]), err)
	}
	answers := make([][]string, len(reply))
	for i := range reply {
		for _, code := range reply[i].([]any) {
			answers[i] = append(answers[i], text(code))
		}
	}
	return answers, nil
}

func (e *examination) askEach(ctx context.Context, q bus.Queue, jobs []string, fix bool) (answers [][]string, err error) {
	for _, packed := range jobs {
		answer, err := e.askJobs(ctx, q, []string{packed}, fix)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			answer = [][]string{{"again"}}
		}
		answers = append(answers, answer...)
	}
	return answers, nil
}

func (e *examination) tellJob(q bus.Queue, packed string, codes []string) {
	bid, ours := batchOf(q, packed)
	if !ours {
		if len(codes) > 0 {
			e.leave("job "+showJob(packed), "in queue %s is not one that this program writes", q)
		}
		return
	}
	for _, code := range codes {
		key, about := "job "+showJob(packed), string(q)
		switch code {
		case "listed":
			continue
		case "foreign", "foreign_listed":
			key = e.keys.Batch(bus.BatchID(bid))
			delete(e.batches, bid)
		case "unindexed", "empty", "jobless":
			key = e.keys.Batch(bus.BatchID(bid))
		case "index_gone":
			key, about = e.keys.BatchesIndex(), bid
		}
		r := jobRulings[code]
		e.found(key, r.remedy, "%s", strings.ReplaceAll(r.problem, "{}", about))
	}
}
