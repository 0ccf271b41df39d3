package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	clientjobs "routemaster/client/jobs"
	"routemaster/client/subscriber"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
)

var jobTypeRows = row{
	use: "type", short: "make, list, change, pause and remove the types of jobs",
	example: "  rtm job type add invoice-shipments --strategy at_least_once --attempts 3 --concurrency 5 --pull -b @production\n" +
		"  rtm job type list -b @production",
	rows: []row{
		{
			use: "add NAME", short: "make a job type", kinds: []kind{newJobType},
			long: `Make a type of jobs, which says where they go, how often they are tried, and how many are in progress at once. --strategy,
--attempts and --concurrency are required. Jobs are POSTed to --url, or fetched by services with --pull; without either
they go where the bus's operator says (DOWNSTREAM_URL). NAME has A-Z, a-z, 0-9, dot, underscore, colon and hyphen,
and cannot be changed. The type belongs to the client that makes it.`,
			example: "  rtm job type add invoice-shipments --strategy at_least_once --attempts 3 --concurrency 5 --url https://invoices.example/jobs -b @production\n" +
				"  rtm job type add nightly --strategy at_most_once --attempts 1 --concurrency 1 --pull --schedule '0 3 * * *' --timezone Europe/Berlin -b @production",
			flags: func(f *pflag.FlagSet) {
				addTypeFlags(f)
				f.Bool("paused", false, "take no jobs until rtm job type resume")
			},
			choices: strategies,
			run: func(c *call) error {
				t := clientjobs.Type{Name: c.args[0], URL: new(string), Paused: c.is("paused")}
				if err := applyTypeFlags(c, &t); err != nil {
					return err
				}
				_, err := c.jobs().AddType(c.Context(), t)
				return err
			},
		},
		{
			use: "list", short: "list all job types, with how many jobs of them have not ended",
			long: `List all types of jobs, newest first. QUEUED are the jobs that wait; WAITING are queued jobs that are due and held back by
the limit, which is CONCURRENCY, or by a pause; IN PROGRESS is those that their service has. SENT TO is the URL that jobs are POSTed to,
"pull" if services fetch them, or DOWNSTREAM_URL if they go where the bus's operator says. STATE is "held until" a time while no job is
sent because the service asked for time (429 or 503).

Without a terminal each type is a line with name, the numbers of jobs queued, waiting and in progress, paused (true or
false), concurrency, strategy, attempts, timeout (ms), retention (s), schedule, time zone, where jobs are sent, who
made the type, until when jobs are held back (ms since the Unix epoch, empty if they are not), and the clients that may
use it (separated by commas, empty for all), and the next time of the schedule (ms, empty without one), separated by
tabs.`,
			example: "  rtm job type list -b @production\n  rtm job type list -b bus.example -t shop--1 --json",
			json:    jsonArray,
			run: func(c *call) error {
				types, err := c.jobs().Types(c.Context())
				if err != nil {
					return err
				}
				l := list{
					value: append([]clientjobs.TypeInfo{}, types...), empty: "There are no job types.",
					header: []string{"TYPE", "STATE", "QUEUED", "WAITING", "IN PROGRESS", "CONCURRENCY", "ATTEMPTS", "STRATEGY", "TIMEOUT", "SCHEDULE", "NEXT", "SENT TO", "OWNER", "CLIENTS"},
				}
				var plain [][]string
				for _, t := range types {
					l.rows, plain = append(l.rows, typeRow(t)), append(plain, typeLine(t))
				}
				l.plain = writeLines(plain)
				return c.print(l)
			},
		},
		{
			use: "show NAME", short: "show a job type, and why its jobs wait", kinds: []kind{jobType},
			long:    "Show a type of jobs, how many of its jobs have not ended, and why those are not in progress, or stay there.",
			example: "  rtm job type show invoice-shipments -b @production",
			json:    jsonObject,
			run:     showing(func(c *call) (clientjobs.TypeInfo, error) { return c.jobs().Type(c.Context(), c.args[0]) }, typeFields),
		},
		{
			use: "set NAME", short: "change a job type", kinds: []kind{jobType},
			long: `Change what is given of a job type, at once and on all workers; the rest stays. Jobs that are queued keep the number of
attempts that they were enqueued with. Only the client that made the type and root may do this.`,
			example: "  rtm job type set invoice-shipments --concurrency 10 --timeout 30m -b @production\n" +
				"  rtm job type set nightly --schedule off -b @production",
			flags: func(f *pflag.FlagSet) {
				addTypeFlags(f)
				for _, name := range []string{"timeout", "retention"} { // members that are not given stay
					f.Lookup(name).DefValue = "0s" // which the help does not show
				}
			},
			choices: strategies,
			run: func(c *call) error {
				members, err := typeChanges(c)
				if err != nil {
					return err
				}
				return changeType(c, members)
			},
		},
		{
			use: "pause NAME", short: "have the jobs of a type wait, until rtm job type resume", kinds: []kind{jobType},
			long: "Have no more jobs of the type be taken. Those that are in progress go on, and jobs can be enqueued. " +
				"Only the client that made the type and root may do this.",
			example: "  rtm job type pause invoice-shipments -b @production",
			run:     func(c *call) error { return changeType(c, map[string]any{"paused": true}) },
		},
		{
			use: "resume NAME", short: "end a pause of a job type", kinds: []kind{jobType},
			long:    "Have the jobs of the type be taken again. Only the client that made the type and root may do this.",
			example: "  rtm job type resume invoice-shipments -b @production",
			run:     func(c *call) error { return changeType(c, map[string]any{"paused": false}) },
		},
		{
			use: "del NAME", short: "remove a job type; with --force also one that has jobs", kinds: []kind{jobType},
			long: `Remove a job type. While jobs of it are queued or in progress that is refused, unless --force cancels them. Jobs that have
ended are kept as long as before. Only the client that made the type and root may do this. With --force it says on stderr
how many jobs are cancelled, and on a terminal asks first.`,
			example: "  rtm job type del invoice-shipments -b @production\n  rtm job type del invoice-shipments --force -b @production",
			flags:   func(f *pflag.FlagSet) { f.Bool("force", false, "cancel the jobs of the type that have not ended") },
			asks:    true,
			run:     deleteType,
		},
	},
}

func changeType(c *call, members map[string]any) error {
	_, err := c.jobs().ChangeType(c.Context(), c.args[0], members)
	return err
}

func deleteType(c *call) error {
	name := c.args[0]
	if !c.is("force") {
		err := c.jobs().DeleteType(c.Context(), name)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusConflict {
			return fmt.Errorf("jobs of %s are queued or in progress; wait until they have ended, or give --force to have them cancelled", name)
		}
		return err
	}
	of, err := c.jobs().Type(c.Context(), name)
	if err != nil {
		return err
	}
	open := int(of.Counts.Queued + of.Counts.InProgress)
	if err := c.ask("cancelled with the type: " + count(open, "job")); err != nil {
		return err
	}
	return c.jobs().DeleteTypeAndJobs(c.Context(), name)
}

// strategies complete --strategy.
var strategies = map[string][]string{"strategy": {clientjobs.AtLeastOnce, clientjobs.AtMostOnce}}

func addTypeFlags(f *pflag.FlagSet) {
	f.String("strategy", "", "at_least_once: jobs are tried again if they fail; at_most_once: once, whatever happens")
	f.Int("attempts", 0, "how often a job is tried at most, 1 to 32767; 1 for at_most_once")
	f.Int("concurrency", 0, "how many jobs are in progress at most, over all workers, 1 to 32767")
	f.String("url", "", "the https `URL` that jobs are POSTed to; off for where the bus's operator says")
	f.Bool("pull", false, "services fetch the jobs, instead of --url")
	f.Duration("timeout", jobs.DefaultTimeout, "how long a service that has a job may take to report, 1s to 24h")
	f.Duration("retention", jobs.DefaultRetention, "how long a job that has ended is kept, 0s to 8760h")
	f.String("schedule", "", "a `CRON` expression of five fields: a job is enqueued at each of its times; off for none")
	f.String("timezone", "", "the time `ZONE` of the schedule, such as Europe/Berlin (default: UTC)")
	f.String("schedule-data", "", "the data of the jobs of the schedule, a `JSON` value; @FILE reads it from a file, - from the standard input")
	f.StringSlice("clients", nil, "the `NAMES` of the clients that may enqueue, cancel, replay, fetch and report its jobs, besides root; off for all")
	setMember(f, "strategy", "delivery_strategy")
	setMember(f, "pull", "url")
}

// applyTypeFlags sets the members of a type whose flags were given, and checks the type. Errors are
// [usageError]s.
func applyTypeFlags(c *call, t *clientjobs.Type) (err error) {
	url, schedule, timeout, retention := c.text("url"), c.text("schedule"), c.duration("timeout"), c.duration("retention")
	switch {
	case c.given("pull") && c.given("url"):
		return wrongFlag("pull", "given without --url")
	case c.given("pull") && !c.is("pull"):
		return wrongFlag("pull", "left out for --url URL or --url off")
	case c.given("url") && url == "":
		return wrongFlag("url", "an https URL, or off")
	case c.given("schedule") && schedule == "":
		return wrongFlag("schedule", "a cron expression of five fields, or off")
	case timeout < jobs.MinTimeout || timeout > jobs.MaxTimeout || timeout%time.Millisecond != 0:
		return wrongFlag("timeout", "1s to 24h, in whole ms")
	case retention < 0 || retention > jobs.MaxRetention || retention%time.Second != 0:
		return wrongFlag("retention", "0s to 8760h, in whole seconds")
	}
	t.Timezone = c.text("timezone")
	t.Timeout, t.Retention = subscriber.Milliseconds(timeout.Milliseconds()), new(int64(retention/time.Second))
	set(c.given("strategy"), &t.Strategy, c.text("strategy"))
	set(c.given("schedule"), &t.Schedule, unlessOff(schedule))
	set(c.given("attempts"), &t.Attempts, c.int("attempts"))
	set(c.given("concurrency"), &t.Concurrency, c.int("concurrency"))
	set(c.given("url"), &t.URL, new(unlessOff(url)))
	set(c.given("pull"), &t.URL, nil)
	if clients := must(c.Flags().GetStringSlice("clients")); c.given("clients") && !slices.Equal(clients, []string{"off"}) {
		t.Clients = clients
	}
	if t.ScheduleData, err = readJobData(c, "schedule-data"); err != nil {
		return err
	}
	return checkJobType(c, *t)
}

// set assigns a value that was given.
func set[T any](given bool, to *T, value T) {
	if given {
		*to = value
	}
}

// unlessOff is a value, empty for off.
func unlessOff(value string) string {
	if value == off {
		return ""
	}
	return value
}

// typeChanges returns the members of a type that were given. Only the bus knows the other members,
// so they are checked beside the loosest ones. Errors are [usageError]s.
func typeChanges(c *call) (map[string]any, error) {
	const always = "* * * * *"
	t := clientjobs.Type{Name: c.args[0], Strategy: clientjobs.AtLeastOnce, Attempts: 1, Concurrency: 1, Schedule: always}
	if err := applyTypeFlags(c, &t); err != nil {
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
	var flags pflag.FlagSet
	addTypeFlags(&flags)
	members := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if c.given(f.Name) {
			members[memberOf(f)] = all[memberOf(f)] // null if it was left out of the text: the default
		}
	})
	if len(members) == 0 {
		return nil, usageError{errors.New("nothing to change; give what is to be changed, such as --concurrency 10")}
	}
	return members, nil
}

// checkJobType refuses a job type that no bus accepts, with a [usageError] that names the flag.
func checkJobType(c *call, t clientjobs.Type) error {
	checked := jobs.Type{
		Name: jobs.TypeName(t.Name), Strategy: jobs.Strategy(t.Strategy), Attempts: t.Attempts, Concurrency: t.Concurrency,
		Pull: t.URL == nil, Timeout: t.Timeout.Duration(), Retention: time.Duration(*t.Retention) * time.Second,
		Schedule: t.Schedule, Timezone: t.Timezone, ScheduleData: t.ScheduleData,
	}
	if t.Clients != nil {
		checked.Clients = bus.Clients{}
	}
	for _, name := range t.Clients {
		checked.Clients = append(checked.Clients, bus.ClientName(name))
	}
	if t.URL != nil {
		checked.URL = *t.URL
	}
	err := checked.Validate()
	if err == nil {
		err = checked.ValidateURL(bus.DenyList{}, true)
	}
	invalid, ok := errors.AsType[*bus.Invalid](err)
	if !ok {
		return err
	}
	return usageError{errors.New(cmp.Or(flagOf(c.Command, invalid.Pointer), "NAME") + joint(invalid.Detail) + invalid.Detail)}
}

// joint is the text between a flag and the detail of its error. The detail is a sentence of its
// own, or goes on, as "must be 1" does.
func joint(detail string) string {
	switch word, _, _ := strings.Cut(detail, " "); word {
	case "must", "is", "has":
		return " "
	}
	return ": "
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
func typeFields(t clientjobs.TypeInfo) [][]string {
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
func typeRow(t clientjobs.TypeInfo) []string {
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
func typeLine(t clientjobs.TypeInfo) []string {
	retention := ""
	if t.Retention != nil {
		retention = number(*t.Retention)
	}
	row := append([]string{t.Name}, typeCounts(t)...)
	row = append(row, strconv.FormatBool(t.Paused), strconv.Itoa(t.Concurrency), t.Strategy, strconv.Itoa(t.Attempts))
	return append(row, number(int64(t.Timeout)), retention, t.Schedule, t.Timezone, sentTo(t), t.Owner, milliseconds(t.HeldUntil), strings.Join(t.Clients, ","),
		milliseconds(t.NextAt))
}

func typeCounts(t clientjobs.TypeInfo) (cells []string) {
	for _, n := range []int64{t.Counts.Queued, t.Counts.Waiting, t.Counts.InProgress} {
		cells = append(cells, number(n))
	}
	return cells
}

// sentTo is where the jobs of a type go.
func sentTo(t clientjobs.TypeInfo) string {
	switch {
	case t.URL == nil:
		return "pull"
	case *t.URL == "":
		return "DOWNSTREAM_URL"
	}
	return *t.URL
}
