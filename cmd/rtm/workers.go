package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/workers"
	"routemaster/internal/bus"
)

func newWorkersCommand() *cobra.Command {
	var to busFlags
	var limit int
	var asJSON bool
	command := &cobra.Command{
		Use:   "workers [QUEUE]",
		Short: "show what the threads of all workers run, or the jobs of a queue that run next: for the operator",
		Long: `Show what the threads of all workers run now; or of a queue the jobs that run next, the next first. The queue main has
the deliveries, aux the housekeeping, jobs those of services, machines the labels. Of each queue at most 500 threads are
looked at; if there are more, or if threads were not heard of for 30 s, a line on stderr says so.

Without a terminal each job is a line with its queue, what it does (batch delivers a batch), its arguments, and of a batch
the subscriber, the number of attempts and the number of events; then the thread that runs it, or with QUEUE when it is
due (ms since the Unix epoch, empty for now), separated by tabs. A batch is held instead if it has to wait for others of
its lane, or for the end of a pause that has none. --json prints an object, or with QUEUE an array.`,
		Example:   "  rtm workers -b @production\n  rtm workers main --limit 20 -b bus.example -t $ROOT_KEY",
		Args:      queueArgs,
		ValidArgs: queueNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case limit < 1 || limit > workers.MaxNext:
				return wrongFlag("limit", fmt.Sprintf("1 to %d", workers.MaxNext))
			case len(args) == 0 && cmd.Flags().Changed("limit"):
				return usageError{errors.New("--limit needs a QUEUE")}
			}
			return to.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
				if len(args) == 0 {
					return showThreads(cmd, c, asJSON)
				}
				return showQueue(cmd, c, args[0], limit, asJSON)
			})(cmd, args)
		},
	}
	to.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	command.Flags().IntVar(&limit, "limit", workers.MaxNext, "with QUEUE, print `COUNT` jobs at most")
	return command
}

func queueNames() (names []string) {
	for _, queue := range bus.Queues {
		names = append(names, string(queue))
	}
	return names
}

// queueArgs demands the name of a queue, or nothing.
func queueArgs(cmd *cobra.Command, args []string) error {
	if err := arguments(0, 1)(cmd, args); err != nil {
		return err
	}
	if len(args) == 1 && !slices.Contains(cmd.ValidArgs, args[0]) {
		return usageError{fmt.Errorf("there is no queue %q; there are: %s", args[0], strings.Join(cmd.ValidArgs, ", "))}
	}
	return nil
}

func showThreads(cmd *cobra.Command, c *client.Client, asJSON bool) error {
	threads, err := workers.Get(cmd.Context(), c)
	if err != nil {
		return err
	}
	var rows, table [][]string
	for _, job := range threads.Running {
		table = append(table, append(jobCells(job, "-"), job.Thread))
		rows = append(rows, append(jobCells(job, ""), job.Thread))
	}
	empty := fmt.Sprintf("Nothing runs. Threads: %d.", threads.Active)
	if threads.Active == 0 {
		empty = "No thread was heard of in the last 30 s. Without a worker nothing is delivered."
	}
	err = list{
		json: asJSON, value: threads, empty: empty, header: jobHeader("THREAD"), rows: table,
		plain: func(w io.Writer) error { return lines(w, rows) },
	}.print(cmd.OutOrStdout())
	if threads.Silent > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "rtm: threads not heard of for 30 s: %d; what they ran is queued again\n", threads.Silent)
	}
	if threads.More > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "rtm: threads that were not looked at: %d\n", threads.More)
	}
	return err
}

func showQueue(cmd *cobra.Command, c *client.Client, queue string, limit int, asJSON bool) error {
	jobs, err := workers.Next(cmd.Context(), c, queue, limit)
	if err != nil {
		return err
	}
	var rows, table [][]string
	for _, job := range jobs {
		due, plain := "now", millis(job.DueAt)
		switch {
		case job.Held:
			due, plain = "held", "held"
		case !job.DueAt.IsZero():
			due = clock(job.DueAt.Time)
		}
		table = append(table, append(jobCells(job, "-"), due))
		rows = append(rows, append(jobCells(job, ""), plain))
	}
	return list{
		json: asJSON, value: append([]workers.Job{}, jobs...), empty: "Nothing waits.", header: jobHeader("DUE"), rows: table,
		plain: func(w io.Writer) error { return lines(w, rows) },
	}.print(cmd.OutOrStdout())
}

// jobHeader is the header of jobs in queues, given that of the last column.
func jobHeader(last string) []string {
	return []string{"QUEUE", "JOB", "ARGUMENTS", "SUBSCRIBER", "ATTEMPTS", "EVENTS", last}
}

// jobCells are a job in a queue, without the last cell. A text stands for what it does not have.
func jobCells(job workers.Job, nothing string) []string {
	cells := []string{job.Queue, cmp.Or(job.Job, nothing), cmp.Or(strings.Join(job.Arguments, " "), nothing)}
	if job.Batch == nil {
		return append(cells, nothing, nothing, nothing)
	}
	return append(cells, job.Batch.Subscriber, strconv.Itoa(job.Batch.Attempts), strconv.Itoa(job.Batch.Events))
}
