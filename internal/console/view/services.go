package view

import (
	"cmp"

	"routemaster/internal/overview"
)

// JobType is a job type in a list.
type JobType struct {
	overview.JobType
	State overview.State
}

// JobTypesOf are the job types of the figures.
func JobTypesOf(f overview.Figures) []JobType {
	all := make([]JobType, len(f.JobTypes))
	for i, t := range f.JobTypes {
		all[i] = JobType{t, jobTypeState(t)}
	}
	return all
}

func jobTypeState(t overview.JobType) overview.State {
	switch {
	case t.Paused:
		return overview.PausedState
	case t.HeldBack:
		return overview.Behind
	case t.Queued == 0 && t.InProgress == 0:
		return overview.Idle
	}
	return overview.OK
}

// JobTypes is the list of job types, those in trouble first.
var JobTypes = Kind[JobType]{
	id: "job-types", name: func(t *JobType) string { return t.Name }, usual: "state",
	keys: map[string]func(*JobType, string) bool{
		"state": func(t *JobType, value string) bool { return oneOf(value, t.State) },
	},
	columns: []Column[JobType]{
		{Name: "name", Title: "Name", Rank: 1, compare: by(func(t *JobType) string { return t.Name })},
		{Name: "state", Title: "State", Figure: "state of a job type", Rank: 1, compare: by(func(t *JobType) int { return stateOrder(t.State) })},
		{Name: "queued", Title: "Queued", Figure: "queued jobs", Number: true, Rank: 1, descending: true, compare: by(func(t *JobType) int64 { return t.Queued })},
		{Name: "waiting", Title: "Waiting", Figure: "waiting", Number: true, Rank: 2, descending: true, compare: by(func(t *JobType) int64 { return t.Waiting })},
		{Name: "progress", Title: "In progress", Figure: "in progress", Number: true, Rank: 2, descending: true, compare: by(func(t *JobType) int64 { return t.InProgress })},
		{Name: "oldest", Title: "Oldest", Figure: "oldest job", Number: true, Rank: 1, descending: true, compare: byOptional(func(t *JobType) *float64 { return t.OldestAge })},
		{Name: "succeeded", Title: "Succeeded/s", Figure: "jobs that ended", Number: true, Rank: 2, descending: true, compare: byOptional(func(t *JobType) *float64 { return t.Succeeded })},
		{Name: "failed", Title: "Failed/s", Figure: "jobs that ended", Number: true, Rank: 2, descending: true, compare: byOptional(func(t *JobType) *float64 { return t.Failed })},
		{Name: "expired", Title: "Expired/s", Figure: "jobs that ended", Number: true, Rank: 3, descending: true, compare: byOptional(func(t *JobType) *float64 { return t.Expired })},
	},
}

// Machines is the list of state machines, those with labels in trouble first.
var Machines = Kind[overview.Machine]{
	id: "machines", name: func(m *overview.Machine) string { return m.Name }, usual: "-errored",
	columns: []Column[overview.Machine]{
		{Name: "name", Title: "Name", Rank: 1, compare: by(func(m *overview.Machine) string { return m.Name })},
		{Name: "labels", Title: "Labels", Figure: "labels", Number: true, Rank: 1, descending: true, compare: by(func(m *overview.Machine) int64 { return m.Labels })},
		{Name: "errored", Title: "Errored", Figure: "errored", Number: true, Rank: 1, descending: true, compare: func(a, b *overview.Machine) int {
			return cmp.Or(cmp.Compare(a.Errored, b.Errored), cmp.Compare(a.Unpublished, b.Unpublished))
		}},
		{Name: "moves", Title: "Moves/s", Figure: "moves", Number: true, Rank: 1, descending: true, compare: byOptional(func(m *overview.Machine) *float64 { return m.Moves })},
		{Name: "failed", Title: "Failed/s", Figure: "failures of a machine", Number: true, Rank: 2, descending: true, compare: byOptional(func(m *overview.Machine) *float64 { return m.Failed })},
		{Name: "unpublished", Title: "To be published", Figure: "unpublished", Number: true, Rank: 2, descending: true, compare: by(func(m *overview.Machine) int64 { return m.Unpublished })},
	},
}
