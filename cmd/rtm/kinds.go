package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"routemaster/client"
	clientjobs "routemaster/client/jobs"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
)

// kind is a kind of argument.
type kind struct {
	// check refuses a value that no bus would take.
	check func(text string) error
	// words complete it. If there are none, the bus's names do, unless they are unsafe: shells
	// evaluate completions.
	words []string
	names func(context.Context, *client.Client) []string
	safe  func(name string) bool
}

// These are kinds of arguments. For anything nothing is known.
var (
	anything = kind{}
	topic    = kind{
		names: func(ctx context.Context, c *client.Client) []string {
			topics, _ := c.Topics(ctx)
			return namesOf(topics, func(t client.Topic) string { return t.Name })
		},
		safe: func(name string) bool { return bus.TopicName(name).Validate() == nil },
	}
	jobID   = kind{check: checkJobID}
	outcome = kind{
		words: []string{"succeeded", "failed"},
		check: func(text string) error {
			if text != "succeeded" && text != "failed" {
				return fmt.Errorf("%q is not an outcome; give succeeded or failed", text)
			}
			return nil
		},
	}
	newJobType = kind{check: func(name string) error {
		if err := jobs.TypeName(name).Validate(); err != nil {
			return fmt.Errorf("%q is not the name of a job type: %s", name, detailOf(err))
		}
		return nil
	}}
	jobType = kind{
		check: newJobType.check,
		names: func(ctx context.Context, c *client.Client) []string {
			types, _ := clientjobs.New(c).Types(ctx)
			return namesOf(types, func(t clientjobs.TypeInfo) string { return t.Name })
		},
		safe: func(name string) bool { return jobs.TypeName(name).Validate() == nil },
	}
	machine = kind{
		check: func(name string) error {
			if err := machines.Name(name).Validate(); err != nil {
				return fmt.Errorf("%q does not name a machine: %s", name, detailOf(err))
			}
			return nil
		},
		names: func(ctx context.Context, c *client.Client) []string {
			names, _, _ := clientmachines.Names(ctx, c)
			return names
		},
		safe: regexp.MustCompile(`^[\w.-]+$`).MatchString,
	}
	label = kind{check: func(name string) error {
		if err := machines.LabelName(name).Validate(); err != nil {
			return fmt.Errorf("%q does not name a label: %s", name, detailOf(err))
		}
		return nil
	}}
	queue = kind{words: queueNames(), check: func(name string) error {
		if names := queueNames(); !slices.Contains(names, name) {
			return fmt.Errorf("there is no queue %q; there are: %s", name, strings.Join(names, ", "))
		}
		return nil
	}}
)

func namesOf[T any](values []T, name func(T) string) (names []string) {
	for _, value := range values {
		names = append(names, name(value))
	}
	return names
}

// checkJobID refuses a text that is no job's id.
func checkJobID(text string) error {
	if _, err := jobs.ParseID(text); err != nil || !strings.HasPrefix(text, jobs.IDPrefix) {
		return fmt.Errorf("%q is not a job's id, which is %s and a UUID, such as job_282227eb-3c76-4ef7-af7e-25dff933077f", text, jobs.IDPrefix)
	}
	return nil
}
