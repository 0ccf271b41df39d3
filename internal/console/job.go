package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"routemaster/client/jobs"
	"routemaster/internal/console/view"
)

// jobPage is the data of a job's page.
type jobPage struct {
	jobs.Job
	// Text is the data, with the digits that it has.
	Text string
	// Tries are its last attempts, the latest first.
	Tries Panel[[]jobs.Attempt]
}

// Ended reports whether the job is neither queued nor in progress.
func (p jobPage) Ended() bool { return slices.Contains(endedStatuses, p.Status) }

// findJob is the job that a page is about.
func findJob(v *Visit) (jobs.Job, error) {
	return jobs.New(v.Bus).JobOf(v.Context(), v.Path("type"), v.Path("job"))
}

func loadJob(v *Visit) (any, error) {
	job, err := findJob(v)
	if err != nil {
		return nil, err
	}
	return jobPage{job, view.Indent(job.Data), Part(jobs.New(v.Bus).Attempts(v.Context(), job.Type, job.ID))}, nil
}

// findPage is the data of the page that finds a job by its id.
type findPage struct {
	ID string
	// Found is the job that has the ID, if one was looked for.
	Found Panel[*jobs.Job]
}

func loadFind(v *Visit) (any, error) {
	p := findPage{ID: strings.TrimSpace(v.Query("id"))}
	if p.ID == "" {
		return p, nil
	}
	// Without the prefix the API would look for a type.
	job, err := jobs.New(v.Bus).Job(v.Context(), "job_"+strings.TrimPrefix(p.ID, "job_"))
	p.Found = Part(&job, err)
	return p, nil
}

// cancel asks before a job is cancelled.
var cancel = Question{
	Path: jobPath + "/cancel", Calls: "DELETE /v1/jobs/{name}/{id}", For: Members, Back: jobPath,
	Ask: func(v *Visit) (c view.Confirm, err error) {
		job, err := findJob(v)
		if err != nil {
			return c, err
		}
		c = view.Confirm{
			Title: "Cancel a job of " + job.Type, Button: "Cancel the job of " + job.Type,
			Effects: []string{job.ID + " is not tried any more. It can be replayed later."},
			Command: view.Command(http.MethodDelete, view.Path("v1", "jobs", job.Type, job.ID), nil),
		}
		if job.Status == "in-progress" {
			c.Effects = append(c.Effects, "A service has it now, and may do the work all the same.")
		}
		return c, nil
	},
	Do: func(v *Visit) (Answer, error) {
		inProgress, err := jobs.New(v.Bus).Cancel(v.Context(), v.Path("type"), v.Path("job"))
		message := "Cancelled the job."
		if inProgress {
			message = "Cancelled the job. Its service has it, and may do the work all the same."
		}
		return SeeOther(message, jobPath, v.Path("type"), v.Path("job")), err
	},
}

// replayJob asks before a copy of a job is enqueued.
var replayJob = Question{
	Path: jobPath + "/replay", Calls: "POST /v1/jobs/{name}/{id}/replay", For: Members, Back: jobPath,
	Ask: func(v *Visit) (c view.Confirm, err error) {
		job, err := findJob(v)
		return view.Confirm{
			Title: "Replay a job of " + job.Type, Button: "Enqueue a copy of the job of " + job.Type,
			Effects: []string{"A job with the same data, another id and all attempts is enqueued. This one stays as it is."},
			Command: view.Command(http.MethodPost, view.Path("v1", "jobs", job.Type, job.ID, "replay"), nil),
		}, err
	},
	Do: func(v *Visit) (Answer, error) {
		copied, err := jobs.New(v.Bus).ReplayOf(v.Context(), v.Path("type"), v.Path("job"))
		return SeeOther("Enqueued a copy of the job. This is the copy.", jobPath, v.Path("type"), copied.ID), err
	},
}

// enqueuePage is the data of the page that enqueues a job.
type enqueuePage struct {
	view.Form
	// Type is the job type's name, ID the job's: a form that is sent twice enqueues one job.
	Type, ID string
	Command  string
}

func enqueueForm(v *Visit) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "data", Label: "Data", Kind: view.Code, Required: true, Value: "{}", Hint: "One JSON value, of at most 102,400 bytes."},
	}}
	v.Fill(&f)
	return f
}

func loadEnqueue(v *Visit) (any, error) {
	t, err := jobs.New(v.Bus).Type(v.Context(), v.Path("type"))
	if err != nil {
		return nil, err
	}
	p := enqueuePage{Form: enqueueForm(v), Type: t.Name, ID: v.Form("id")}
	if p.ID == "" {
		p.ID = jobs.NewID()
	}
	p.Command = view.Command(http.MethodPut, view.Path("v1", "jobs", t.Name, p.ID), map[string]any{"data": map[string]any{}})
	return p, nil
}

func submitEnqueue(v *Visit) (answer Answer, err error) {
	f := enqueueForm(v)
	if err := RequireJSON(f); err != nil {
		return answer, err
	}
	job, err := jobs.New(v.Bus).Enqueue(v.Context(), v.Path("type"), jobs.NewJob{ID: v.Form("id"), Data: json.RawMessage(f.Value("data"))})
	return SeeOther("Enqueued the job.", jobPath, v.Path("type"), job.ID), err
}
