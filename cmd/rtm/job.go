package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	clientjobs "routemaster/client/jobs"
	"routemaster/internal/jobs"
	"routemaster/internal/terminal"
)

var jobRows = row{
	use: "job", short: "enqueue jobs, look at them, and report on them; and their types",
	example: "  rtm job put invoice-shipments --data '{\"shipmentId\":\"shp_123\"}' -b @production\n  rtm job list invoice-shipments -b @production",
	rows: []row{
		{
			use: "put NAME [ID]", short: "enqueue a job of a type", kinds: []kind{jobType, jobID},
			long: `Enqueue a job of the type NAME, and print its id. An ID is job_ and a UUID; without one it is random. If there is a job of
that ID which has not ended, nothing is enqueued: so a command with an ID can be run again. It is stored once, even if
the request has to be sent again.`,
			example: "  rtm job put invoice-shipments --data '{\"shipmentId\":\"shp_123\"}' -b @production\n" +
				"  rtm job put invoice-shipments job_282227eb-3c76-4ef7-af7e-25dff933077f --data @shipment.json --run-after 10m -b @production\n" +
				"  jq .shipment order.json | rtm job put invoice-shipments --data - --expires-at 2027-01-31T12:00:00Z -b @production",
			flags: func(f *pflag.FlagSet) {
				f.String("data", "", "the job's data, a `JSON` value; @FILE reads it from a file, - from the standard input (default: null)")
				f.String("run-after", "", "the earliest `TIME` to run it, in RFC 3339, in ms since the Unix epoch, or 10m for in 10 minutes (default: now)")
				f.String("expires-at", "", "the `TIME` after which it is not to be run any more (default: never)")
			},
			json: "print the job as a JSON object",
			run:  putJob,
		},
		{
			use: "show ID", short: "show a job: its status, its times, its data and its attempts", kinds: []kind{jobID},
			long: `Show a job, whether it has ended or not, as long as it is kept: as a table on a terminal, else a line for each, with name
and value separated by a tab. Behind the data are its last attempts, the latest first: with how many were left, when one began,
how long it took, what came of it, and why. With --json they are last_attempts, in the object of the job.`,
			example: "  rtm job show job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
			json:    jsonObject,
			run:     showing(readJob, jobDetails),
		},
		{
			use: "list [NAME]", short: "list jobs that have not ended, or with --archived those that have", kinds: []kind{jobType},
			long: `List the jobs of a type, or of all, that have not ended, newest first; with --archived those that have. At most --limit
are printed. If there are more, a line on stderr says which --before goes on with them.

Without a terminal each job is a line with id, type, status, number of attempts left, when it was enqueued or ended, when
it may run, when it expires, the deadline of its service (ms since the Unix epoch, empty where there is none) and why an
attempt failed, separated by tabs. Only --json and rtm job show have the data.`,
			example: "  rtm job list -b @production\n  rtm job list invoice-shipments --status in-progress -b @production\n" +
				"  rtm job list --archived --status failed --limit 20 -b @production",
			flags: func(f *pflag.FlagSet) {
				f.Bool("archived", false, "the jobs that have ended")
				f.String("status", "", "only jobs with this `STATUS`: queued or in-progress, or with --archived succeeded, failed, expired or cancelled")
				f.Int("limit", clientjobs.MaxPage, "print `COUNT` jobs at most")
				f.String("before", "", "go on at this `PLACE`, which the command before has said")
			},
			choices: map[string][]string{"status": jobStatuses(true, true)},
			json:    jsonArray,
			run:     listJobs,
		},
		{
			use: "report ID OUTCOME", short: "report that a job succeeded or failed, in place of its service", kinds: []kind{jobID, outcome},
			long: `Report on an attempt of a job: OUTCOME is succeeded or failed. A job that failed is tried again while it has attempts
left, but not with --final. A report is about the attempt that the job was given with; one that is not the job's any
more is refused, so a service gives its own as --attempt. Without that the report is about the attempt that the job
is at now.`,
			example: "  rtm job report job_282227eb-3c76-4ef7-af7e-25dff933077f succeeded -b @production\n" +
				"  rtm job report job_282227eb-3c76-4ef7-af7e-25dff933077f failed --attempt 3 --final --error 'no such customer' -b @production",
			flags: func(f *pflag.FlagSet) {
				f.Int("attempt", 0, "the `ATTEMPT` that the report is about (default: the one that the job is at)")
				f.Bool("final", false, "a job that failed is not tried again")
				f.String("error", "", "`WHY` the job failed")
			},
			run: reportJob,
		},
		{
			use: "cancel ID [ID...]", short: "end jobs that are not wanted any more", kinds: []kind{jobID},
			long: `Archive jobs as cancelled. If a job is in progress, its service may do the work all the same, and its report is refused;
it is said which are. It ends with the first that cannot be cancelled, such as one that has ended.`,
			example: "  rtm job cancel job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
			run: each(0, func(c *call, id string) (string, error) {
				job, err := lookUp(c.Context(), c.jobs(), id, "cancel")
				if err != nil {
					return "", err
				}
				inProgress, err := c.jobs().Cancel(c.Context(), job.Type, id)
				if inProgress {
					return "cancelled " + id + "; its service has it, and may do the work all the same", err
				}
				return "cancelled " + id, err
			}),
		},
		{
			use: "replay ID [ID...]", short: "enqueue copies of jobs that are in progress or have ended", kinds: []kind{jobID},
			long: `Enqueue a copy of each job, with another id and all attempts of its type. The ids of the copies are printed, one a line.
It ends with the first job that cannot be replayed: one that is queued runs anyway. Run again, it enqueues more copies.`,
			example: "  rtm job replay job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
			run: each(0, func(c *call, id string) (string, error) {
				replayed, err := c.jobs().Replay(c.Context(), id)
				return replayed.ID, err
			}),
		},
		jobTypeRows,
	},
}

func putJob(c *call) error {
	job, err := newJob(c, time.Now())
	if err != nil {
		return err
	}
	queued, err := c.jobs().Enqueue(c.Context(), c.args[0], job)
	return c.sayOr(queued.ID, queued, err)
}

// newJob reads the arguments and the flags. Errors are [usageError]s.
func newJob(c *call, now time.Time) (job clientjobs.NewJob, err error) {
	if len(c.args) > 1 {
		job.ID = c.args[1]
	}
	for _, flag := range []string{"run-after", "expires-at"} {
		if !c.given(flag) {
			continue
		}
		into := &job.RunAfter
		if flag == "expires-at" {
			into = &job.ExpiresAt
		}
		at, ok := futureTime(c.text(flag), now)
		if !ok || into == &job.ExpiresAt && at.Equal(now) { // which leaves no time to run it
			return job, wrongFlag(flag, "like 2027-01-31T12:00:00Z, like 10s, for in 10 seconds, or in ms since the Unix epoch; in a year from 2001 to 9999")
		}
		*into = at
	}
	data, err := readJobData(c, "data")
	if data != nil {
		job.Data = data
	}
	return job, err
}

// futureTime reads a time: in RFC 3339, in ms since the Unix epoch, or how long it is until then.
// Before 2001 it is a number of something else, and after 9999 the bus cannot read it.
func futureTime(text string, now time.Time) (at time.Time, ok bool) {
	if in, err := time.ParseDuration(text); err == nil && in >= 0 {
		return now.Add(in), true
	}
	at, ok = pointInTime(text, now)
	year := at.UTC().Year()
	return at, ok && year >= 2001 && year <= 9999
}

// triedJob is a job as rtm job show --json prints it.
type triedJob struct {
	clientjobs.Job
	LastAttempts []clientjobs.Attempt `json:"last_attempts"`
}

func readJob(c *call) (tried triedJob, err error) {
	if tried.Job, err = c.jobs().Job(c.Context(), c.args[0]); err != nil {
		return tried, err
	}
	attempts, err := c.jobs().Attempts(c.Context(), tried.Type, tried.ID)
	tried.LastAttempts = append([]clientjobs.Attempt{}, attempts...)
	return tried, err
}

// jobDetails are the rows of rtm job show. Times are as the bus sends them.
func jobDetails(job triedJob) [][]string {
	rows := [][]string{
		{"id", job.ID}, {"type", job.Type}, {"status", job.Status}, {"attempts left", strconv.Itoa(job.Job.Attempts)},
	}
	created := "created"
	if !isOpen(job.Job) {
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
	rows = append(rows, []string{"data", string(job.Data)})
	for _, a := range job.LastAttempts {
		rows = append(rows, []string{"attempt " + strconv.Itoa(a.Attempt), describeAttempt(a)})
	}
	return rows
}

// describeAttempt is an attempt in words.
func describeAttempt(a clientjobs.Attempt) string {
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

// isOpen reports whether a job has not ended.
func isOpen(job clientjobs.Job) bool { return !jobs.Status(job.Status).IsArchived() }

// jobStatuses are the statuses of open jobs, of archived jobs, or of both.
func jobStatuses(open, archived bool) (words []string) {
	if open {
		words = append(words, string(jobs.Queued), string(jobs.InProgress))
	}
	for _, status := range jobs.Archived {
		if archived {
			words = append(words, string(status))
		}
	}
	return words
}

// checkJobFilter refuses a status that no list has. Errors are [usageError]s.
func checkJobFilter(status string, archived bool) error {
	words := jobStatuses(!archived, archived)
	switch {
	case status == "" || slices.Contains(words, status):
		return nil
	case slices.Contains(jobStatuses(!archived, true), status):
		return usageError{fmt.Errorf("jobs that are %s have ended; give --archived too", status)}
	}
	return wrongFlag("status", strings.Join(words, " or "))
}

func listJobs(c *call) error {
	filter, read, created := clientjobs.Filter{Status: c.text("status")}, c.jobs().OpenPages, "ENQUEUED"
	if c.is("archived") {
		read, created = c.jobs().ArchivedPages, "ENDED"
	}
	if c.int("limit") < 1 {
		return wrongFlag("limit", "1 or more")
	}
	if err := checkJobFilter(filter.Status, c.is("archived")); err != nil {
		return err
	}
	if len(c.args) > 0 {
		filter.Type = c.args[0]
	}
	var found []clientjobs.Job
	var next string
	for page, err := range read(c.Context(), filter, c.text("before"), c.int("limit")) {
		if err != nil {
			return err
		}
		found, next = append(found, page.Jobs...), page.Next
	}
	err := printList(c, found, "There are no such jobs.", "JOB|TYPE|STATUS|ATTEMPTS|"+created+"|RUN AFTER||DEADLINE|REASON", func(job clientjobs.Job) []any {
		return []any{job.ID, job.Type, job.Status, job.Attempts, job.CreatedAt, job.RunAfter, job.ExpiresAt, job.Deadline, dashed(job.Reason)}
	})
	if next != "" {
		c.note("there are more jobs; go on with --before %s", next)
	}
	return err
}

func reportJob(c *call) error {
	succeeded := c.args[1] == "succeeded"
	r := clientjobs.Report{Attempt: c.int("attempt"), Succeeded: succeeded, Final: c.is("final"), Error: c.text("error")}
	switch {
	case c.given("attempt") && r.Attempt < 1:
		return wrongFlag("attempt", "1 or more")
	case r.Final && succeeded:
		return wrongFlag("final", "left out; it is for jobs that failed")
	case r.Error != "" && succeeded:
		return wrongFlag("error", "left out; it is for jobs that failed")
	}
	job, err := lookUp(c.Context(), c.jobs(), c.args[0], "report on")
	if err != nil {
		return err
	}
	if !c.given("attempt") && !isOpen(job) {
		return fmt.Errorf("job %s has ended as %s; a report on it needs the --attempt that it is about", job.ID, terminal.Escape(job.Status))
	}
	r.Attempt = cmp.Or(r.Attempt, job.Attempts)
	return c.jobs().Report(c.Context(), job.Type, job.ID, r)
}

// lookUp returns a job that a command is to do something with. The error of one that cannot be
// looked up names that operation, such as "cancel".
func lookUp(ctx context.Context, j *clientjobs.Jobs, id, operation string) (clientjobs.Job, error) {
	job, err := j.Job(ctx, id)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		err = fmt.Errorf("%s job %s: %w", operation, id, refused)
	}
	return job, err
}
