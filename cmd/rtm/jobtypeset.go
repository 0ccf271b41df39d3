package main

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	clientjobs "routemaster/client/jobs"
	"routemaster/client/subscriber"
	"routemaster/internal/jobs"
)

// typeFlags are what rtm job type add and set are told of a type.
type typeFlags struct {
	strategy, url, schedule, timezone, data string
	attempts, concurrency                   int
	timeout, retention                      time.Duration
	clients                                 []string
	pull                                    bool
}

// typeMembers are the members of a type in the bus's API, by the flags that set them.
var typeMembers = map[string]string{
	"strategy": "delivery_strategy", "attempts": "attempts", "concurrency": "concurrency", "url": "url", "pull": "url",
	"timeout": "timeout", "retention": "retention", "schedule": "schedule", "timezone": "timezone", "schedule-data": "schedule_data",
	"clients": "clients",
}

func (f *typeFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.strategy, "strategy", "", "at_least_once: jobs are tried again if they fail; at_most_once: once, whatever happens")
	flags.IntVar(&f.attempts, "attempts", 0, "how often a job is tried at most, 1 to 32767; 1 for at_most_once")
	flags.IntVar(&f.concurrency, "concurrency", 0, "how many jobs are in progress at most, over all workers, 1 to 32767")
	flags.StringVar(&f.url, "url", "", "the https `URL` that jobs are POSTed to; off for where the bus's operator says")
	flags.BoolVar(&f.pull, "pull", false, "services fetch the jobs, instead of --url")
	flags.DurationVar(&f.timeout, "timeout", jobs.DefaultTimeout, "how long a service that has a job may take to report, 1s to 24h")
	flags.DurationVar(&f.retention, "retention", jobs.DefaultRetention, "how long a job that has ended is kept, 0s to 8760h")
	flags.StringVar(&f.schedule, "schedule", "", "a `CRON` expression of five fields: a job is enqueued at each of its times; off for none")
	flags.StringVar(&f.timezone, "timezone", "", "the time `ZONE` of the schedule, such as Europe/Berlin (default: UTC)")
	flags.StringVar(&f.data, "schedule-data", "", "the data of the jobs of the schedule, a `JSON` value; @FILE reads it from a file, - from the standard input")
	flags.StringSliceVar(&f.clients, "clients", nil, "the `NAMES` of the clients that may enqueue, cancel, replay, fetch and report its jobs, besides root; off for all")
	_ = command.RegisterFlagCompletionFunc("strategy",
		cobra.FixedCompletions([]string{clientjobs.AtLeastOnce, clientjobs.AtMostOnce}, cobra.ShellCompDirectiveNoFileComp))
}

// apply sets what was given of a type, and checks it. What is wrong is a [usageError].
func (f *typeFlags) apply(cmd *cobra.Command, t *clientjobs.Type) (err error) {
	given := cmd.Flags().Changed
	switch {
	case given("pull") && given("url"):
		return wrongFlag("pull", "given without --url")
	case given("pull") && !f.pull:
		return wrongFlag("pull", "left out for --url URL or --url off")
	case given("url") && f.url == "":
		return wrongFlag("url", "an https URL, or off")
	case given("schedule") && f.schedule == "":
		return wrongFlag("schedule", "a cron expression of five fields, or off")
	case f.timeout < jobs.MinTimeout || f.timeout > jobs.MaxTimeout || f.timeout%time.Millisecond != 0:
		return wrongFlag("timeout", "1s to 24h, in whole ms")
	case f.retention < 0 || f.retention > jobs.MaxRetention || f.retention%time.Second != 0:
		return wrongFlag("retention", "0s to 8760h, in whole seconds")
	}
	set(given("strategy"), &t.Strategy, f.strategy)
	set(given("attempts"), &t.Attempts, f.attempts)
	set(given("concurrency"), &t.Concurrency, f.concurrency)
	set(given("url"), &t.URL, new(unlessOff(f.url)))
	set(given("pull"), &t.URL, nil)
	set(true, &t.Timeout, subscriber.Milliseconds(f.timeout.Milliseconds()))
	set(true, &t.Retention, new(int64(f.retention/time.Second)))
	set(given("schedule"), &t.Schedule, unlessOff(f.schedule))
	set(given("timezone"), &t.Timezone, f.timezone)
	if given("clients") && !slices.Equal(f.clients, []string{"off"}) {
		t.Clients = f.clients
	}
	if t.ScheduleData, err = readJobData(cmd, "schedule-data", f.data); err != nil {
		return err
	}
	return checkJobType(*t)
}

// set assigns a value that was given.
func set[T any](given bool, to *T, value T) {
	if given {
		*to = value
	}
}

// unlessOff is a value, empty for off.
func unlessOff(value string) string {
	if value == "off" {
		return ""
	}
	return value
}

func newJobTypeAddCommand(bus *busFlags) *cobra.Command {
	var f typeFlags
	var paused bool
	command := &cobra.Command{
		Use:   "add NAME",
		Short: "make a job type",
		Long: `Make a type of jobs, which says where they go, how often they are tried, and how many are in progress at once. --strategy,
--attempts and --concurrency are required. Jobs are POSTed to --url, or fetched by services with --pull; without either
they go where the bus's operator says (DOWNSTREAM_URL). NAME has A-Z, a-z, 0-9, dot, underscore, colon and hyphen,
and cannot be changed. The type belongs to the client that makes it.`,
		Example: "  rtm job type add invoice-shipments --strategy at_least_once --attempts 3 --concurrency 5 --url https://invoices.example/jobs -b @production\n" +
			"  rtm job type add nightly --strategy at_most_once --attempts 1 --concurrency 1 --pull --schedule '0 3 * * *' --timezone Europe/Berlin -b @production",
		Args:              jobTypeArgs(1, 1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			t := clientjobs.Type{Name: args[0], URL: new(string), Paused: paused}
			if err := f.apply(cmd, &t); err != nil {
				return err
			}
			return bus.runJobs(func(cmd *cobra.Command, j *clientjobs.Jobs, _ []string) error {
				_, err := j.AddType(cmd.Context(), t)
				return err
			})(cmd, args)
		},
	}
	f.add(command)
	command.Flags().BoolVar(&paused, "paused", false, "take no jobs until rtm job type resume")
	return command
}

func newJobTypeSetCommand(bus *busFlags) *cobra.Command {
	var f typeFlags
	command := &cobra.Command{
		Use:   "set NAME",
		Short: "change a job type",
		Long: `Change what is given of a job type, at once and on all workers; the rest stays. Jobs that are queued keep the number of
attempts that they were enqueued with. Only the client that made the type and root may do this.`,
		Example: "  rtm job type set invoice-shipments --concurrency 10 --timeout 30m -b @production\n" +
			"  rtm job type set nightly --schedule off -b @production",
		Args:              jobTypeArgs(1, 1, 1),
		ValidArgsFunction: bus.completeJobTypes,
		RunE: func(cmd *cobra.Command, args []string) error {
			members, err := f.changes(cmd, args[0])
			if err != nil {
				return err
			}
			return bus.runJobs(func(cmd *cobra.Command, j *clientjobs.Jobs, _ []string) error {
				_, err := j.ChangeType(cmd.Context(), args[0], members)
				return err
			})(cmd, args)
		},
	}
	f.add(command)
	for _, name := range []string{"timeout", "retention"} { // what is not given stays
		command.Flags().Lookup(name).DefValue = "0s" // which the help does not show
	}
	return command
}

// changes returns the members of a type that were given. They are checked beside the loosest of the
// others, because only the bus knows those. What is wrong is a [usageError].
func (f *typeFlags) changes(cmd *cobra.Command, name string) (map[string]any, error) {
	const always = "* * * * *"
	t := clientjobs.Type{Name: name, Strategy: clientjobs.AtLeastOnce, Attempts: 1, Concurrency: 1, Schedule: always}
	if err := f.apply(cmd, &t); err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	members := map[string]any{}
	for flag, member := range typeMembers {
		if cmd.Flags().Changed(flag) {
			members[member] = all[member] // null if it was left out of the text: the default
		}
	}
	if len(members) == 0 {
		return nil, usageError{errors.New("nothing to change; give what is to be changed, such as --concurrency 10")}
	}
	return members, nil
}
