package console

import (
	"iter"
	"net/http"
	"slices"
	"strings"

	"routemaster/client/jobs"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// typePage is the data of a job type's page.
type typePage struct {
	Name string
	// Row is nil if the figures do not have the type, or not yet.
	Row *view.JobType
	// Mine reports whether the visitor may change the type.
	Mine bool
	// Type is the type as the bus reports it, Jobs are some of its jobs.
	Type Panel[jobs.TypeInfo]
	Jobs Panel[jobs.Page]
	// Statuses are the choices, Status is the chosen one. Empty selects all jobs that have not ended.
	Statuses []string
	Status   string
}

// openStatuses are the statuses of jobs that have not ended, endedStatuses the rest.
var (
	openStatuses  = []string{"queued", "in-progress"}
	endedStatuses = []string{"succeeded", "failed", "expired", "cancelled"}
)

func loadType(v *Visit) (any, error) {
	p := typePage{Name: v.Path("type"), Statuses: slices.Concat(openStatuses, endedStatuses)}
	all := view.JobTypesOf(v.Figures)
	if i := slices.IndexFunc(all, func(t view.JobType) bool { return t.Name == p.Name }); i >= 0 {
		p.Row = &all[i]
	}
	info, err := jobs.New(v.Bus).Type(v.Context(), p.Name)
	if err != nil && p.Row == nil {
		return nil, err
	}
	p.Type, p.Mine = Part(info, err), v.Root || info.Owner == v.Client
	if status := v.Query("status"); slices.Contains(p.Statuses, status) {
		p.Status = status
	}
	if err == nil {
		p.Jobs = Part(jobsOf(v, p.Name, p.Status))
	}
	return p, nil
}

// jobsOf is a page of the jobs of a type, the newest first.
func jobsOf(v *Visit, name, status string) (jobs.Page, error) {
	list := jobs.New(v.Bus).OpenPages
	if slices.Contains(endedStatuses, status) {
		list = jobs.New(v.Bus).ArchivedPages
	}
	return firstPage(list(v.Context(), jobs.Filter{Type: name, Status: status}, v.Query("before"), view.PageSize))
}

func firstPage(pages iter.Seq2[jobs.Page, error]) (jobs.Page, error) {
	for p, err := range pages {
		return p, err
	}
	return jobs.Page{}, nil
}

// pauseType asks before no job of a type is taken any more.
var pauseType = Question{
	Path: typePath + "/pause", Calls: "PATCH /v2/job-types/{name}", For: Members, Back: typePath,
	Ask: func(v *Visit) (view.Confirm, error) {
		return askPaused(v, "Pause", "No job of it is taken until it is resumed. What is in progress goes on, and new jobs wait.", true)
	},
	Do: func(v *Visit) (Answer, error) { return setPaused(v, "Paused", true) },
}

// resume has jobs of a type taken again.
var resume = Question{
	Path: typePath + "/resume", Calls: "PATCH /v2/job-types/{name}", For: Members, Back: typePath,
	Ask: func(v *Visit) (view.Confirm, error) {
		return askPaused(v, "Resume", "Its jobs are taken again, those first that are due for the longest time.", false)
	},
	Do: func(v *Visit) (Answer, error) { return setPaused(v, "Resumed", false) },
}

func askPaused(v *Visit, verb, effect string, paused bool) (c view.Confirm, err error) {
	t, err := jobs.New(v.Bus).Type(v.Context(), v.Path("type"))
	if err != nil {
		return c, err
	}
	waiting := format.Plural(t.Counts.Queued, "job") + " queued, " + format.Plural(t.Counts.InProgress, "job") + " in progress."
	return view.Confirm{
		Title: verb + " " + t.Name, Button: verb + " " + t.Name, Effects: []string{effect, waiting},
		Command: view.Command(http.MethodPatch, view.Path("v2", "job-types", t.Name), map[string]any{"paused": paused}),
	}, nil
}

func setPaused(v *Visit, done string, paused bool) (Answer, error) {
	name := v.Path("type")
	_, err := jobs.New(v.Bus).ChangeType(v.Context(), name, map[string]any{"paused": paused})
	return SeeOther(done+" "+name+".", typePath, name), err
}

// Strategy is how the delivery strategy is called in sentences.
func (p typePage) Strategy() string { return strings.ReplaceAll(p.Type.Value.Strategy, "_", " ") }
