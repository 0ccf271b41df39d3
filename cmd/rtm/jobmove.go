package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/terminal"
)

func newJobReportCommand(bus *busFlags) *cobra.Command {
	var attempt int
	var final bool
	var reason string
	command := &cobra.Command{
		Use:   "report ID OUTCOME",
		Short: "report that a job succeeded or failed, in place of its service",
		Long: `Report on an attempt of a job: OUTCOME is succeeded or failed. A job that failed is tried again while it has attempts
left, but not with --final. A report is about the attempt that the job was given with; one that is not the job's any
more is refused, so a service gives its own as --attempt. Without that the report is about the attempt that the job
is at now.`,
		Example: "  rtm job report job_282227eb-3c76-4ef7-af7e-25dff933077f succeeded -b @production\n" +
			"  rtm job report job_282227eb-3c76-4ef7-af7e-25dff933077f failed --attempt 3 --final --error 'no such customer' -b @production",
		Args: reportArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"succeeded", "failed"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	report := bus.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
		job, err := lookUp(cmd.Context(), j, args[0], "report on")
		if err != nil {
			return err
		}
		r := jobs.Report{Attempt: job.Attempts, Succeeded: args[1] == "succeeded", Final: final, Error: reason}
		if cmd.Flags().Changed("attempt") {
			r.Attempt = attempt
		} else if !isOpen(job) {
			return fmt.Errorf("job %s has ended as %s; a report on it needs the --attempt that it is about", args[0], terminal.Escape(job.Status))
		}
		return j.Report(cmd.Context(), job.Type, args[0], r)
	})
	command.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("attempt") && attempt < 1:
			return wrongFlag("attempt", "1 or more")
		case final && args[1] == "succeeded":
			return wrongFlag("final", "left out; it is for jobs that failed")
		case reason != "" && args[1] == "succeeded":
			return wrongFlag("error", "left out; it is for jobs that failed")
		}
		return report(cmd, args)
	}
	command.Flags().IntVar(&attempt, "attempt", 0, "the `ATTEMPT` that the report is about (default: the one that the job is at)")
	command.Flags().BoolVar(&final, "final", false, "a job that failed is not tried again")
	command.Flags().StringVar(&reason, "error", "", "`WHY` the job failed")
	return command
}

// reportArgs accepts the arguments of rtm job report.
func reportArgs(cmd *cobra.Command, args []string) error {
	if err := arguments(2, 2)(cmd, args); err != nil {
		return err
	}
	if args[1] != "succeeded" && args[1] != "failed" {
		return usageError{fmt.Errorf("%q is not an outcome; give succeeded or failed", args[1])}
	}
	return checkJobID(args[0])
}

// lookUp returns a job that a command is to do something with. The error of one that cannot be
// looked up names that operation, such as "cancel".
func lookUp(ctx context.Context, j *jobs.Jobs, id, operation string) (jobs.Job, error) {
	job, err := j.Job(ctx, id)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		err = fmt.Errorf("%s job %s: %w", operation, id, refused)
	}
	return job, err
}

func newJobCancelCommand(bus *busFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID [ID...]",
		Short: "end jobs that are not wanted any more",
		Long: `Archive jobs as cancelled. If a job is in progress, its service may do the work all the same, and its report is refused;
it is said which are. It ends with the first that cannot be cancelled, such as one that has ended.`,
		Example:           "  rtm job cancel job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
		Args:              jobIDs(1, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: bus.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			for _, id := range args {
				job, err := lookUp(cmd.Context(), j, id, "cancel")
				if err != nil {
					return err
				}
				inProgress, err := j.Cancel(cmd.Context(), job.Type, id)
				if err != nil {
					return err
				}
				line := "cancelled " + id
				if inProgress {
					line += "; its service has it, and may do the work all the same"
				}
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		}),
	}
}

func newJobReplayCommand(bus *busFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "replay ID [ID...]",
		Short: "enqueue copies of jobs that are in progress or have ended",
		Long: `Enqueue a copy of each job, with another id and all attempts of its type. The ids of the copies are printed, one a line.
It ends with the first job that cannot be replayed: one that is queued runs anyway. Run again, it enqueues more copies.`,
		Example:           "  rtm job replay job_282227eb-3c76-4ef7-af7e-25dff933077f -b @production",
		Args:              jobIDs(1, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: bus.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
			for _, id := range args {
				replayed, err := j.Replay(cmd.Context(), id)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(replayed.ID))
			}
			return nil
		}),
	}
}
