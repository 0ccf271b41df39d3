package web

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/web/rest"
)

// entryView is a job in a queue. Times are in ms since the Unix epoch.
type entryView struct {
	Queue bus.Queue `json:"queue"`
	// Job is null if the entry cannot be read.
	Job       *bus.JobName `json:"job"`
	Arguments []string     `json:"arguments"`
	// DueAt is null if the job is to run now, or runs.
	DueAt *int64 `json:"due_at"`
	// Thread is who runs it; null if it waits.
	Thread *bus.WorkerID `json:"thread"`
	// Batch is what a job named batch delivers; null for others, and for a batch that is gone.
	Batch *batchView `json:"batch"`
}

// batchView is a batch of any subscriber.
type batchView struct {
	ID         bus.BatchID    `json:"id"`
	Subscriber bus.ClientName `json:"subscriber"`
	CreatedAt  int64          `json:"created_at"`
	// Attempts counts the deliveries that were begun.
	Attempts int `json:"attempts"`
	Events   int `json:"events"`
}

// maxThreads is of how many threads of a queue it is listed what they run.
const maxThreads = 500

// threadsView is what the threads of all workers do.
type threadsView struct {
	// Active is how many threads were heard of in the last 30 s, Silent how many were not, and are
	// still noted.
	Active  int         `json:"active"`
	Silent  int         `json:"silent"`
	Running []entryView `json:"running"`
	// More is how many threads were not looked at.
	More int `json:"more"`
}

// getThreads shows what the threads of all workers run.
func (a *API) getThreads(w http.ResponseWriter, r *http.Request) {
	view := threadsView{Running: []entryView{}}
	var err error
	if view.Active, view.Silent, err = a.look.Workers(r.Context(), a.Now().Add(-bus.DeadAfter)); err != nil {
		a.Fail(w, r, err)
		return
	}
	for _, name := range bus.Queues {
		entries, more, err := a.look.Running(r.Context(), name, maxThreads)
		if err != nil {
			a.Fail(w, r, err)
			return
		}
		running, err := a.viewEntries(r, name, entries)
		if err != nil {
			a.Fail(w, r, err)
			return
		}
		view.Running, view.More = append(view.Running, running...), view.More+more
	}
	rest.WriteJSON(w, http.StatusOK, view)
}

// getQueue lists the jobs of a queue that run next.
func (a *API) getQueue(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	limit := q.Limit()
	if err := q.Err(); err != nil {
		a.Fail(w, r, err)
		return
	}
	name := bus.Queue(chi.URLParam(r, "queue"))
	if !slices.Contains(bus.Queues[:], name) {
		rest.NotFound(w, r)
		return
	}
	entries, err := a.look.Next(r.Context(), name, limit)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	views, err := a.viewEntries(r, name, entries)
	a.RespondJSON(w, r, views, err)
}

// viewEntries shows entries of a queue, with the batches that they deliver.
func (a *API) viewEntries(r *http.Request, name bus.Queue, entries []queue.Entry) ([]entryView, error) {
	var ids []bus.BatchID
	for _, e := range entries {
		if e.Job.Name == bus.JobBatch && len(e.Job.Args) == 1 {
			ids = append(ids, bus.BatchID(e.Job.Args[0]))
		}
	}
	batches, err := a.inspector.Heads(r.Context(), ids)
	if err != nil {
		return nil, err
	}
	names, err := a.Auth.ClientNames(r.Context())
	if err != nil {
		return nil, err
	}
	views := make([]entryView, len(entries))
	for i, e := range entries {
		views[i] = entryView{
			Queue: name, Job: rest.OrNull(e.Job.Name), Arguments: argumentsOf(e.Job),
			DueAt: rest.Millis(e.DueAt), Thread: rest.OrNull(e.Worker),
		}
		if len(e.Job.Args) == 1 {
			views[i].Batch = viewHead(batches, bus.BatchID(e.Job.Args[0]), names)
		}
	}
	return views, nil
}

// argumentsOf are the arguments of a job, with ids as clients know them.
func argumentsOf(job bus.Job) []string {
	arguments := append([]string{}, job.Args...) // never null
	if job.Name == bus.JobJob && len(arguments) == 1 {
		arguments[0] = jobs.IDPrefix + arguments[0]
	}
	return arguments
}

func viewHead(batches map[bus.BatchID]inspect.Head, id bus.BatchID, names map[bus.Token]bus.ClientName) *batchView {
	head, found := batches[id]
	if !found {
		return nil
	}
	return &batchView{
		ID: id, Subscriber: bus.PublicName(head.Token, names[head.Token]), CreatedAt: head.CreatedAt.UnixMilli(),
		Attempts: head.Attempts, Events: head.Events,
	}
}
