package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/bus"
)

func newJobTypeCommand(to *busFlags) *cobra.Command {
	return newGroup("type", "make, list, change, pause and remove the types of jobs",
		"  rtm job type add invoice-shipments --strategy at_least_once --attempts 3 --concurrency 5 --pull -b @production\n"+
			"  rtm job type list -b @production",
		newJobTypeAddCommand(to), newJobTypeListCommand(to), newJobTypeShowCommand(to), newJobTypeSetCommand(to),
		newJobTypePauseCommand(to), newJobTypeResumeCommand(to), newJobTypeDelCommand(to))
}

func newJobTypeListCommand(to *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list all job types, with how many jobs of them have not ended",
		Long: `List all types of jobs, newest first. QUEUED is the jobs that wait; WAITING is those of them that are due and held back by
the limit, which is CONCURRENCY, or by a pause; IN PROGRESS is those that their service has. SENT TO is the URL that jobs are POSTed to,
"pull" if services fetch them, or DOWNSTREAM_URL if they go where the bus's operator says. STATE is "held until" a time while no job is
sent because the service asked for time (429 or 503).

Without a terminal each type is a line with name, the numbers of jobs queued, waiting and in progress, paused (true or
false), concurrency, strategy, attempts, timeout (ms), retention (s), schedule, time zone, where jobs are sent, who
made the type, until when jobs are held back (ms since the Unix epoch, empty if they are not), and the clients that may
use it (separated by commas, empty for all), and the next time of the schedule (ms, empty without one), separated by
tabs.`,
		Example: "  rtm job type list -b @production\n  rtm job type list -b bus.example -t shop--1 --json",
		Args:    arguments(0, 0),
		RunE: to.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, _ []string) error {
			types, err := j.Types(cmd.Context())
			if err != nil {
				return err
			}
			var rows, table [][]string
			for _, t := range types {
				rows, table = append(rows, typeLine(t)), append(table, typeRow(t))
			}
			return list{
				json: asJSON, value: append([]jobs.TypeInfo{}, types...), empty: "There are no job types.",
				header: []string{"TYPE", "STATE", "QUEUED", "WAITING", "IN PROGRESS", "CONCURRENCY", "ATTEMPTS", "STRATEGY", "TIMEOUT", "SCHEDULE", "NEXT", "SENT TO", "OWNER", "CLIENTS"},
				rows:   table, plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}

// typeCauses are the causes of a type's view for which no command is advised, in words.
var typeCauses = map[string]string{
	"no_worker": "no worker runs: no job that is due later comes up, and no deadline is kept; start a worker",
	"no_job_threads": "no worker runs jobs, since all have ROUTEMASTER_JOB_THREADS=0: none is sent or comes up, and no deadline is kept; " +
		"set that for one of them",
	"held_type":      "its service has asked for time",
	"awaiting_fetch": "jobs are due that no service has fetched",
	"not_due":        "all that are queued wait for their time",
}

func newJobTypeShowCommand(to *busFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:               "show NAME",
		Short:             "show a job type, and why its jobs wait",
		Long:              "Show a type of jobs, how many of its jobs have not ended, and why those are not in progress, or stay there.",
		Example:           "  rtm job type show invoice-shipments -b @production",
		Args:              jobTypeArgs(1, 1, 1),
		ValidArgsFunction: to.completeJobTypes,
		RunE: to.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			t, err := j.Type(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			rows := typeFields(t)
			return list{
				json: asJSON, value: t, header: []string{"WHAT", "VALUE"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, rows) },
			}.print(cmd.OutOrStdout())
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return command
}

// typeCause is a cause of a type's view, in words.
func typeCause(name, cause string) string {
	switch cause {
	case "paused":
		return "it is paused: " + bus.Command("job type resume", name) + " ends that"
	case "concurrency":
		return "as many of its jobs are in progress as may be: " + bus.Command("job type set --concurrency=NUMBER", name) +
			" allows more, and reports make room"
	}
	return cmp.Or(typeCauses[cause], cause)
}

// typeFields is a type, a line for each field.
func typeFields(t jobs.TypeInfo) [][]string {
	row, counts := typeRow(t), typeCounts(t)
	fields := [][]string{
		{"type", t.Name}, {"state", row[1]}, {"queued", counts[0]}, {"waiting", counts[1]}, {"in progress", counts[2]},
		{"concurrency", strconv.Itoa(t.Concurrency)}, {"attempts", strconv.Itoa(t.Attempts)}, {"strategy", t.Strategy},
		{"timeout", t.Timeout.Duration().String()}, {"sent to", sentTo(t)}, {"owner", t.Owner},
	}
	for _, cause := range t.Causes {
		fields = append(fields, []string{"why", typeCause(t.Name, cause)})
	}
	return fields
}

// typeRow is a type as a terminal shows it.
func typeRow(t jobs.TypeInfo) []string {
	state, schedule, next := "ready", "-", "-"
	switch {
	case t.Paused:
		state = "paused"
	case !t.HeldUntil.IsZero():
		state = "held until " + clock(t.HeldUntil)
	}
	if t.Schedule != "" {
		schedule = t.Schedule
		if t.Timezone != "" {
			schedule += " " + t.Timezone
		}
		next = clock(t.NextAt)
	}
	row := append([]string{t.Name, state}, typeCounts(t)...)
	return append(row, strconv.Itoa(t.Concurrency), strconv.Itoa(t.Attempts), t.Strategy, t.Timeout.Duration().String(), schedule, next, sentTo(t), t.Owner,
		cmp.Or(strings.Join(t.Clients, ", "), "all"))
}

// typeLine is a type as a script reads it.
func typeLine(t jobs.TypeInfo) []string {
	retention := ""
	if t.Retention != nil {
		retention = strconv.FormatInt(*t.Retention, 10)
	}
	row := append([]string{t.Name}, typeCounts(t)...)
	row = append(row, strconv.FormatBool(t.Paused), strconv.Itoa(t.Concurrency), t.Strategy, strconv.Itoa(t.Attempts))
	return append(row, strconv.FormatInt(int64(t.Timeout), 10), retention, t.Schedule, t.Timezone, sentTo(t), t.Owner, milliseconds(t.HeldUntil), strings.Join(t.Clients, ","),
		milliseconds(t.NextAt))
}

func typeCounts(t jobs.TypeInfo) (cells []string) {
	for _, n := range []int64{t.Counts.Queued, t.Counts.Waiting, t.Counts.InProgress} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}

// sentTo is where the jobs of a type go.
func sentTo(t jobs.TypeInfo) string {
	switch {
	case t.URL == nil:
		return "pull"
	case *t.URL == "":
		return "DOWNSTREAM_URL"
	}
	return *t.URL
}

func newJobTypePauseCommand(to *busFlags) *cobra.Command {
	return newJobTypePausedCommand(to, "pause", "have the jobs of a type wait, until rtm job type resume",
		`Have no more jobs of the type be taken. Those that are in progress go on, and jobs can be enqueued.`, true)
}

func newJobTypeResumeCommand(to *busFlags) *cobra.Command {
	return newJobTypePausedCommand(to, "resume", "end a pause of a job type",
		`Have the jobs of the type be taken again.`, false)
}

// newJobTypePausedCommand makes the command that sets whether a type is paused.
func newJobTypePausedCommand(to *busFlags, name, short, long string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use:               name + " NAME",
		Short:             short,
		Long:              long + " Only the client that made the type and root may do this.",
		Example:           "  rtm job type " + name + " invoice-shipments -b @production",
		Args:              jobTypeArgs(1, 1, 1),
		ValidArgsFunction: to.completeJobTypes,
		RunE: to.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			_, err := j.ChangeType(cmd.Context(), args[0], map[string]any{"paused": paused})
			return err
		}),
	}
}

func newJobTypeDelCommand(to *busFlags) *cobra.Command {
	var force bool
	var asking consent
	command := &cobra.Command{
		Use:   "del NAME",
		Short: "remove a job type; with --force also one that has jobs",
		Long: `Remove a job type. While jobs of it are queued or in progress that is refused, unless --force cancels them. Jobs that have
ended are kept as long as before. Only the client that made the type and root may do this. With --force it says on stderr
how many jobs are cancelled, and on a terminal asks first.`,
		Example:           "  rtm job type del invoice-shipments -b @production\n  rtm job type del invoice-shipments --force -b @production",
		Args:              jobTypeArgs(1, 1, 1),
		ValidArgsFunction: to.completeJobTypes,
		RunE: to.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			if force {
				of, err := j.Type(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				open := int(of.Counts.Queued + of.Counts.InProgress)
				if err := asking.ask(cmd, "cancelled with the type: "+count(open, "job")); err != nil {
					return err
				}
				return j.DeleteTypeAndJobs(cmd.Context(), args[0])
			}
			err := j.DeleteType(cmd.Context(), args[0])
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusConflict {
				return fmt.Errorf("jobs of %s are queued or in progress; wait until they have ended, or give --force to have them cancelled", args[0])
			}
			return err
		}),
	}
	command.Flags().BoolVar(&force, "force", false, "cancel the jobs of the type that have not ended")
	asking.add(command)
	return command
}
