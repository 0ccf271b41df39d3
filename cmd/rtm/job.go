package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newJobCommand() *cobra.Command {
	var bus busFlags
	group := newGroup("job", "enqueue jobs, look at them, and report on them; and their types",
		"  rtm job put invoice-shipments --data '{\"shipmentId\":\"shp_123\"}' -b @production\n  rtm job list invoice-shipments -b @production",
		newJobPutCommand(&bus), newJobShowCommand(&bus), newJobListCommand(&bus),
		newJobReportCommand(&bus), newJobCancelCommand(&bus), newJobReplayCommand(&bus), newJobTypeCommand(&bus))
	bus.add(group)
	return group
}

// runJobs makes a cobra function from one that needs the jobs of a bus.
func (b *busFlags) runJobs(do func(cmd *cobra.Command, j *jobs.Jobs, args []string) error) func(*cobra.Command, []string) error {
	return b.run(func(cmd *cobra.Command, c *client.Client, args []string) error { return do(cmd, jobs.New(c), args) })
}

func newJobShowCommand(bus *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "show ID",
		Short: "show a job: its status, its times, its data and its attempts",
		Long: `Show a job, whether it has ended or not, as long as it is kept: as a table on a terminal, else a line for each, with name
and value separated by a tab. Behind the data are its last attempts, the latest first: with how many were left, when one began,
how long it took, what came of it, and why. With --json they are last_attempts, in the object of the job.`,
		Example:           "  rtm job show job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
		Args:              jobIDs(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: bus.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			job, err := j.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			attempts, err := j.Attempts(cmd.Context(), job.Type, job.ID)
			if err != nil {
				return err
			}
			rows := jobDetails(job)
			for _, a := range attempts {
				rows = append(rows, []string{"attempt " + strconv.Itoa(a.Attempt), describeAttempt(a)})
			}
			return list{
				json: asJSON, value: triedJob{job, append([]jobs.Attempt{}, attempts...)}, header: []string{"WHAT", "VALUE"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

// triedJob is a job as rtm job show --json prints it.
type triedJob struct {
	jobs.Job
	LastAttempts []jobs.Attempt `json:"last_attempts"`
}

// jobDetails are the rows of rtm job show. Times are as the bus sends them.
func jobDetails(job jobs.Job) [][]string {
	rows := [][]string{
		{"id", job.ID}, {"type", job.Type}, {"status", job.Status}, {"attempts left", strconv.Itoa(job.Attempts)},
	}
	created := "created"
	if !isOpen(job) {
		created = "ended"
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{created, job.CreatedAt}, {"updated", job.UpdatedAt}, {"run after", job.RunAfter}, {"expires", job.ExpiresAt}, {"deadline", job.Deadline}, {"started", job.StartedAt}} {
		if !at.time.IsZero() {
			rows = append(rows, []string{at.name, at.time.Format(time.RFC3339Nano)})
		}
	}
	if job.Reason != "" {
		rows = append(rows, []string{"reason", job.Reason})
	}
	return append(rows, []string{"data", string(job.Data)})
}

// describeAttempt is an attempt in words.
func describeAttempt(a jobs.Attempt) string {
	words := []string{a.Outcome}
	if !a.BeganAt.IsZero() {
		words = append(words, "began "+a.BeganAt.Format(time.RFC3339Nano))
	}
	if !a.EndedAt.IsZero() && !a.BeganAt.IsZero() {
		words = append(words, "took "+a.Duration.Duration().String())
	}
	if a.Status != 0 {
		words = append(words, "status "+strconv.Itoa(a.Status))
	}
	for _, text := range []string{a.Error, a.Excerpt} {
		if text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, ", ")
}

// jobLister is what rtm job list is told.
type jobLister struct {
	status, before   string
	limit            int
	archived, asJSON bool
}

func newJobListCommand(bus *busFlags) *cobra.Command {
	var l jobLister
	command := &cobra.Command{
		Use:   "list [NAME]",
		Short: "list jobs that have not ended, or with --archived those that have",
		Long: `List the jobs of a type, or of all, that have not ended, newest first; with --archived those that have. At most --limit
are printed. If there are more, a line on stderr says which --before goes on with them.

Without a terminal each job is a line with id, type, status, number of attempts left, when it was enqueued or ended, when
it may run, when it expires, the deadline of its service (ms since the Unix epoch, empty where there is none) and why an
attempt failed, separated by tabs. Only --json and rtm job show have the data.`,
		Example: "  rtm job list -b @production\n  rtm job list invoice-shipments --status in-progress -b @production\n" +
			"  rtm job list --archived --status failed --limit 20 -b @production",
		Args:              jobTypeArgs(0, 1, 1),
		ValidArgsFunction: bus.completeJobTypes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.check(); err != nil {
				return err
			}
			return bus.runJobs(l.run)(cmd, args)
		},
	}
	addJSONFlag(command, &l.asJSON)
	flags := command.Flags()
	flags.BoolVar(&l.archived, "archived", false, "the jobs that have ended")
	flags.StringVar(&l.status, "status", "", "only those with this `STATUS`: queued or in-progress, or with --archived succeeded, failed, expired or cancelled")
	flags.IntVar(&l.limit, "limit", jobs.MaxPage, "print `COUNT` jobs at most")
	flags.StringVar(&l.before, "before", "", "go on at this `PLACE`, which the command before has said")
	_ = command.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(jobStatuses(true, true), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (l *jobLister) run(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
	filter, read := jobs.Filter{Status: l.status}, j.OpenPages
	if len(args) > 0 {
		filter.Type = args[0]
	}
	if l.archived {
		read = j.ArchivedPages
	}
	var found []jobs.Job
	var next string
	for page, err := range read(cmd.Context(), filter, l.before, l.limit) {
		if err != nil {
			return err
		}
		found, next = append(found, page.Jobs...), page.Next
	}
	var rows, table [][]string
	for _, job := range found {
		head := []string{job.ID, job.Type, job.Status, strconv.Itoa(job.Attempts)}
		table = append(table, append(head[:4:4], clock(job.CreatedAt), clock(job.RunAfter), clock(job.Deadline), cmp.Or(job.Reason, "-")))
		rows = append(rows, append(head[:4:4], milliseconds(job.CreatedAt), milliseconds(job.RunAfter), milliseconds(job.ExpiresAt),
			milliseconds(job.Deadline), job.Reason))
	}
	created := "ENQUEUED"
	if l.archived {
		created = "ENDED"
	}
	err := list{
		json: l.asJSON, value: append([]jobs.Job{}, found...), empty: "There are no such jobs.",
		header: []string{"JOB", "TYPE", "STATUS", "ATTEMPTS", created, "RUN AFTER", "DEADLINE", "REASON"}, rows: table,
		plain: func(w io.Writer) error { return lines(w, rows) },
	}.print(cmd.OutOrStdout())
	if next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "rtm: there are more jobs; go on with --before %s\n", terminal.Escape(next))
	}
	return err
}

// milliseconds is a time for scripts, in ms since the Unix epoch.
func milliseconds(t time.Time) string { return millis(subscriber.Time{Time: t}) }
