package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"routemaster/client/workers"
	"routemaster/internal/bus"
)

var workersRow = row{
	use: "workers [QUEUE]", kinds: []kind{queue},
	short: "show what the threads of all workers run, or the jobs of a queue that run next: for the operator",
	long: `Show what the threads of all workers run now; or of a queue the jobs that run next, the next first. The queue main has
the deliveries, aux the housekeeping, jobs the jobs of services, machines the labels. Of each queue at most 500 threads are
looked at; if there are more, or if threads were not heard of for 30 s, a line on stderr says so.

Without a terminal each job is a line with its queue, what it does (batch delivers a batch), its arguments, and of a batch
the subscriber, the number of attempts and the number of events; then the thread that runs it, or with QUEUE when it is
due (ms since the Unix epoch, empty for now), separated by tabs. A batch is held instead if it has to wait for others of
its lane, or for the end of a pause that has none. --json prints an object, or with QUEUE an array.`,
	example: "  rtm workers -b @production\n  rtm workers main --limit 20 -b bus.example -t $ROOT_KEY",
	flags:   func(f *pflag.FlagSet) { f.Int("limit", workers.MaxNext, "with QUEUE, print `COUNT` jobs at most") },
	json:    "print JSON",
	run: func(c *call) error {
		switch limit := c.int("limit"); {
		case limit < 1 || limit > workers.MaxNext:
			return wrongFlag("limit", fmt.Sprintf("1 to %d", workers.MaxNext))
		case len(c.args) == 1:
			return showQueue(c, limit)
		case c.given("limit"):
			return usageError{errors.New("--limit needs a QUEUE")}
		}
		return showThreads(c)
	},
}

func queueNames() []string {
	return namesOf(bus.Queues[:], func(queue bus.Queue) string { return string(queue) })
}

func showThreads(c *call) error {
	threads, err := workers.Get(c.Context(), c.bus)
	if err != nil {
		return err
	}
	empty := fmt.Sprintf("Nothing runs. Threads: %d.", threads.Active)
	if threads.Active == 0 {
		empty = "No thread was heard of in the last 30 s. Without a worker nothing is delivered."
	}
	l := tableOf(threads.Running, empty, jobColumns+"THREAD", func(j workers.Job) []any { return append(jobCells(j), j.Thread) })
	l.value = threads
	err = c.print(l)
	if threads.Silent > 0 {
		c.note("threads not heard of for 30 s: %d; what they ran is queued again", threads.Silent)
	}
	if threads.More > 0 {
		c.note("threads that were not looked at: %d", threads.More)
	}
	return err
}

func showQueue(c *call, limit int) error {
	next, err := workers.Next(c.Context(), c.bus, c.args[0], limit)
	if err != nil {
		return err
	}
	return printList(c, next, "Nothing waits.", jobColumns+"DUE", func(j workers.Job) []any {
		due := cellOf(j.DueAt)
		switch {
		case j.Held:
			due = cell{"held", "held"}
		case j.DueAt.IsZero():
			due.shown = "now"
		}
		return append(jobCells(j), due)
	})
}

// jobColumns are the columns of jobs in queues, before the last one.
const jobColumns = "QUEUE|JOB|ARGUMENTS|SUBSCRIBER|ATTEMPTS|EVENTS|"

// jobCells are a job in a queue, without the last cell.
func jobCells(job workers.Job) []any {
	cells := []any{job.Queue, dashed(job.Job), dashed(strings.Join(job.Arguments, " "))}
	if job.Batch == nil {
		return append(cells, dashed(""), dashed(""), dashed(""))
	}
	return append(cells, job.Batch.Subscriber, job.Batch.Attempts, job.Batch.Events)
}
