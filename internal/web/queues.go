package web

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

// operations are for the operator.
func (h *queueHandlers) operations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/threads", handle: h.getThreads, who: rootOnly,
			id: "listThreads", tag: "overview",
			summary: "Show what the threads of all workers run",
			about:   "For the operator. Of each queue at most 500 threads are looked at.",
			returns: returns(http.StatusOK, "How many threads there are, and what they run.", threadsView{}),
		},
		{
			method: http.MethodGet, path: "/queues/{queue}", handle: h.getQueue, who: rootOnly,
			id: "listQueuedJobs", tag: "overview",
			summary: "List the jobs of a queue that run next",
			about:   "For the operator. A job that is due later may wait for others of its lane until then.",
			params: []parameter{
				{
					name: "queue", in: "path", enum: texts(bus.Queues[:]),
					words: "One of the queues: `main` has the deliveries, `aux` the housekeeping, `jobs` the jobs of services, " +
						"`machines` labels.",
				},
				pageLimit,
			},
			returns: returns(http.StatusOK, "The jobs, the next first.", listOf{of: entryView{}, max: rest.MaxLimit}),
			fails:   []problem{notFound},
		},
	}
}

// QueuesConfig configures [queueHandlers].
type QueuesConfig struct {
	// ScalingThreshold is the number of jobs due within ScalingDeadline from which on
	// /pulse/scaling responds slowly.
	ScalingThreshold int64
	ScalingDeadline  time.Duration
}

// queueHandlers serve the requests that are about queues.
type queueHandlers struct {
	*rest.Service
	config     QueuesConfig
	partitions []queuePartition
}

// queuePartition is the handlers' view of a partition of the bus.
type queuePartition struct {
	queue     *queue.Queue
	look      *queue.Look
	inspector *inspect.Inspector
}

// newQueueHandlers makes the handlers of an API. They read requests and respond by its service.
func newQueueHandlers(config QueuesConfig, service *rest.Service, all *store.Bus) *queueHandlers {
	h := &queueHandlers{Service: service, config: config}
	for _, st := range all.All() {
		p := st.Partition()
		h.partitions = append(h.partitions, queuePartition{queue.New(p), queue.NewLook(p), inspect.Of(st)})
	}
	return h
}

// scalingDelay is how long /pulse/scaling takes when many jobs are due. Autoscalers observe
// latency.
const scalingDelay = time.Second

// getScaling responds slowly while many jobs are due.
func (h *queueHandlers) getScaling(w http.ResponseWriter, r *http.Request) {
	due, err := h.due(r)
	if err == nil && due >= h.config.ScalingThreshold {
		select {
		case <-time.After(scalingDelay):
		case <-r.Context().Done():
		}
	}
	h.Respond(w, r, err)
}

// due is how many batches are due soon.
func (h *queueHandlers) due(r *http.Request) (due int64, err error) {
	for _, p := range h.partitions {
		there, err := p.queue.Due(r.Context(), bus.QueueMain, h.Now().Add(h.config.ScalingDeadline))
		if err != nil {
			return 0, err
		}
		due += there
	}
	return due, nil
}

// entryView is a job in a queue. Times are in ms since the Unix epoch.
type entryView struct {
	Queue bus.Queue `json:"queue"`
	// The kind of job: `batch` delivers a batch, `job` hands a job to its service, `label` takes the
	// due steps of a label; null if it cannot be read.
	Job *bus.JobName `json:"job"`
	// Its subject, such as the id of a job, or a state machine and the name of a label.
	Arguments []string `json:"arguments"`
	// When it is to run, in ms since the Unix epoch; null if that is now, or if it is held.
	DueAt *int64 `json:"due_at"`
	// Whether the delivery of a batch has to wait for others of its lane, or for the end of a pause
	// that has none.
	Held bool `json:"held"`
	// The thread that runs it; null if it waits.
	Thread *bus.WorkerID `json:"thread"`
	// The batch that a `batch` delivers; null for others, and for a batch that is gone.
	Batch *queuedBatchView `json:"batch"`
}

// queuedBatchView is a batch of any subscriber.
type queuedBatchView struct {
	ID bus.BatchID `json:"id"`
	// The name of the client.
	Subscriber bus.ClientName `json:"subscriber"`
	// In ms since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	// How many deliveries were begun.
	Attempts int `json:"attempts" api:"minimum=0"`
	Events   int `json:"events" api:"minimum=0"`
}

// maxThreads is the maximum number of threads of a queue that are listed.
const maxThreads = 500

// threadsView is the response of GET /threads.
type threadsView struct {
	// How many threads were heard of in the last 30 s, threads of other programs included.
	Active int `json:"active" api:"minimum=0"`
	// How many were not, and are still noted. Their jobs are requeued.
	Silent int `json:"silent" api:"minimum=0"`
	// The running jobs, by queue.
	Running []entryView `json:"running"`
	// How many threads were not looked at.
	More int `json:"more" api:"minimum=0"`
}

// getThreads shows the running jobs of all workers' threads.
func (h *queueHandlers) getThreads(w http.ResponseWriter, r *http.Request) {
	view := threadsView{Running: []entryView{}}
	var err error
	// All workers are known in all partitions.
	view.Active, view.Silent, err = h.partitions[0].look.Workers(r.Context(), h.Now().Add(-bus.DeadAfter))
	for _, name := range bus.Queues {
		for _, p := range h.partitions {
			if err == nil {
				err = h.addRunning(r, &view, name, p)
			}
		}
	}
	h.RespondJSON(w, r, view, err)
}

// addRunning adds the entries of a queue of a partition that are run.
func (h *queueHandlers) addRunning(r *http.Request, to *threadsView, name bus.Queue, p queuePartition) error {
	entries, more, err := p.look.Running(r.Context(), name, maxThreads)
	if err != nil {
		return err
	}
	running, err := h.viewEntries(r, name, p, entries)
	to.Running, to.More = append(to.Running, running...), to.More+more
	return err
}

// getQueue lists the jobs of a queue that run next.
func (h *queueHandlers) getQueue(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	limit := q.Limit()
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	name := bus.Queue(chi.URLParam(r, "queue"))
	if !slices.Contains(bus.Queues[:], name) {
		rest.NotFound(w, r)
		return
	}
	views := []entryView{}
	for _, p := range h.partitions {
		entries, err := p.look.Next(r.Context(), name, limit)
		var some []entryView
		if err == nil {
			some, err = h.viewEntries(r, name, p, entries)
		}
		if err != nil {
			h.Fail(w, r, err)
			return
		}
		views = append(views, some...)
	}
	slices.SortStableFunc(views, func(a, b entryView) int { return cmp.Compare(dueAt(a), dueAt(b)) })
	rest.WriteJSON(w, http.StatusOK, views[:min(limit, len(views))])
}

// dueAt is when an entry is to run, for their order: 0 if it is to run now.
func dueAt(e entryView) int64 {
	switch {
	case e.Held:
		return math.MaxInt64
	case e.DueAt == nil:
		return 0
	}
	return *e.DueAt
}

// viewEntries shows entries of a queue of a partition, with the batches that they deliver.
func (h *queueHandlers) viewEntries(r *http.Request, name bus.Queue, p queuePartition, entries []queue.Entry) ([]entryView, error) {
	var ids []bus.BatchID
	for _, e := range entries {
		if id := batchOf(e); id != "" {
			ids = append(ids, id)
		}
	}
	batches, err := p.inspector.Heads(r.Context(), ids)
	if err != nil {
		return nil, err
	}
	next, err := p.inspector.NextAt(r.Context(), scheduled(entries, batches), h.Now())
	if err != nil {
		return nil, err
	}
	names, err := h.Auth.ClientNames(r.Context())
	if err != nil {
		return nil, err
	}
	views := make([]entryView, len(entries))
	for i, e := range entries {
		views[i] = entryView{
			Queue: name, Job: rest.OrNull(e.Job.Name), Arguments: argumentsOf(e.Job),
			DueAt: rest.Millis(e.DueAt), Thread: rest.OrNull(e.Worker),
		}
		views[i].Batch = viewHead(batches, batchOf(e), names)
		if at, found := next[batchOf(e)]; found {
			views[i].DueAt, views[i].Held = rest.Millis(at), at.IsZero()
		}
	}
	return views, nil
}

// scheduled are the heads of the batches whose entries are not instant.
func scheduled(entries []queue.Entry, batches map[bus.BatchID]inspect.Head) map[bus.BatchID]inspect.Head {
	heads := map[bus.BatchID]inspect.Head{}
	for _, e := range entries {
		if head, found := batches[batchOf(e)]; found && !e.DueAt.IsZero() {
			heads[batchOf(e)] = head
		}
	}
	return heads
}

// batchOf is the batch that an entry delivers; empty if it delivers none.
func batchOf(e queue.Entry) bus.BatchID {
	if e.Job.Name != bus.JobBatch || len(e.Job.Args) != 1 {
		return ""
	}
	return bus.BatchID(e.Job.Args[0])
}

// argumentsOf are the arguments of a job, with ids as clients know them.
func argumentsOf(job bus.Job) []string {
	arguments := append([]string{}, job.Args...) // never null
	if job.Name == bus.JobJob && len(arguments) == 1 {
		arguments[0] = jobs.IDPrefix + arguments[0]
	}
	return arguments
}

func viewHead(batches map[bus.BatchID]inspect.Head, id bus.BatchID, names map[bus.Token]bus.ClientName) *queuedBatchView {
	head, found := batches[id]
	if !found {
		return nil
	}
	return &queuedBatchView{
		ID: id, Subscriber: bus.PublicName(head.Token, names[head.Token]), CreatedAt: head.CreatedAt.UnixMilli(),
		Attempts: head.Attempts, Events: head.Events,
	}
}
