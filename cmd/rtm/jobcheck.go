package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"routemaster/client"
	clientjobs "routemaster/client/jobs"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
)

// jobStatuses are the statuses of jobs that have not ended, and of those that have.
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

// check refuses what no list has. Errors are [usageError]s.
func (l *jobLister) check() error {
	if l.limit < 1 {
		return wrongFlag("limit", "1 or more")
	}
	words := jobStatuses(!l.archived, l.archived)
	switch {
	case l.status == "" || slices.Contains(words, l.status):
		return nil
	case slices.Contains(jobStatuses(!l.archived, true), l.status):
		return usageError{fmt.Errorf("jobs that are %s have ended; give --archived too", l.status)}
	}
	return wrongFlag("status", strings.Join(words, " or "))
}

// isOpen reports whether a job has not ended.
func isOpen(job clientjobs.Job) bool { return !jobs.Status(job.Status).IsArchived() }

// checkJobID refuses what is no job's id, with a [usageError].
func checkJobID(text string) error {
	if _, err := jobs.ParseID(text); err != nil || !strings.HasPrefix(text, jobs.IDPrefix) {
		return usageError{fmt.Errorf("%q is not a job's id, which is %s and a UUID, such as job_282227eb-3c76-4ef7-af7e-25dff933077f", text, jobs.IDPrefix)}
	}
	return nil
}

// jobIDs accepts atLeast to atMost arguments that are jobs' ids.
func jobIDs(atLeast, atMost int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := arguments(atLeast, atMost)(cmd, args); err != nil {
			return err
		}
		for _, id := range args {
			if err := checkJobID(id); err != nil {
				return err
			}
		}
		return nil
	}
}

// jobTypeArgs accepts atLeast to atMost arguments, the first of which are names of job types.
func jobTypeArgs(atLeast, atMost, names int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := arguments(atLeast, atMost)(cmd, args); err != nil {
			return err
		}
		for i, name := range args {
			if i == names {
				break
			}
			if err := jobs.TypeName(name).Validate(); err != nil {
				return usageError{fmt.Errorf("%q is not the name of a job type: %s", name, detailOf(err))}
			}
		}
		return nil
	}
}

// detailOf is what is wrong, without where.
func detailOf(err error) string {
	if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
		return invalid.Detail
	}
	return err.Error()
}

// checkJobData refuses what the bus would not take as a job's data, with a [usageError].
func checkJobData(flag string, text []byte) (json.RawMessage, error) {
	data := jsontext.Value(bytes.Clone(text))
	if !data.IsValid() || data.Compact() != nil { // spaces are not sent
		return nil, wrongFlag(flag, `a JSON value without duplicate names, such as {"stock":3} or "text"; @FILE reads it from a file, - from the standard input`)
	}
	switch {
	case len(data) > jobs.MaxData:
		return nil, wrongFlag(flag, fmt.Sprintf("at most %d bytes; it has %d", jobs.MaxData, len(data)))
	case bus.IsTooDeep(data):
		return nil, wrongFlag(flag, fmt.Sprintf("nested at most %d deep", bus.MaxDepth))
	}
	return json.RawMessage(data), nil
}

// checkJobType refuses what is wrong of a job type whatever the bus's operator allows, with a
// [usageError] that names the flag.
func checkJobType(t clientjobs.Type) error {
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
	return usageError{errors.New(typeFlagOf(invalid.Pointer) + joint(invalid.Detail) + invalid.Detail)}
}

// joint is what stands between a flag and what is wrong of it, which is a sentence of its own or
// goes on, as "must be 1" does.
func joint(detail string) string {
	switch word, _, _ := strings.Cut(detail, " "); word {
	case "must", "is", "has":
		return " "
	}
	return ": "
}

// typeFlagOf is the flag for a member of a job type, by its JSON pointer.
func typeFlagOf(pointer string) string {
	switch pointer {
	case "/name":
		return "NAME"
	case "/delivery_strategy":
		return "--strategy"
	}
	if strings.HasPrefix(pointer, "/clients/") {
		return "--clients"
	}
	return "--" + strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "_", "-")
}

// completeJobTypes completes the first argument with the bus's job types.
func (b *busFlags) completeJobTypes(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	return b.complete(0, 1, func(ctx context.Context, c *client.Client) (names []string) {
		types, _ := clientjobs.New(c).Types(ctx)
		for _, t := range types {
			names = append(names, t.Name)
		}
		return names
	}, func(name string) bool { return jobs.TypeName(name).Validate() == nil })(cmd, args, start)
}
