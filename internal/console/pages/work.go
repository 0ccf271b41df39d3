package pages

import (
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/internal/console/page"
	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

// queuedJob is a job in a queue, as the bus shows it.
type queuedJob struct {
	Queue string
	// Job is its name; empty if the bus cannot read it.
	Job       string
	Arguments []string
	// DueAt is zero if it is to run now, or runs.
	DueAt overview.Time `json:"due_at"`
	// Batch is what it delivers, if that is a batch.
	Batch *struct {
		ID, Subscriber string
		CreatedAt      overview.Time `json:"created_at"`
		Attempts       int
		Events         int
	}
}

// Label reports whether it does what is due for a label.
func (j queuedJob) Label() bool { return j.Job == "label" && len(j.Arguments) == 2 }

// Service reports whether it hands a job to its service.
func (j queuedJob) Service() bool { return j.Job == "job" && len(j.Arguments) == 1 }

// threads is what the threads of all workers do.
type threads struct {
	Active, Silent, More int
	Running              []queuedJob
}

// workPage is what the page of the workers shows.
type workPage struct {
	Charts  []view.Chart
	Queues  []queueRow
	Threads page.Panel[threads]
	// Others is how many threads live that no process says are its own.
	Others int
}

// queueRow is a queue, and when the first of its jobs is due.
type queueRow struct {
	overview.Queue
	Next page.Panel[[]queuedJob]
}

func loadWork(v *page.Visit) (any, error) {
	p := workPage{Charts: []view.Chart{
		view.NewChart("busy", "Busy threads", overview.Subject{}, v.Tracks, view.Busy),
		view.NewChart("deliveries", "Deliveries that succeeded, failed", overview.Subject{}, v.Tracks, view.Succeeded, view.Failed),
	}}
	for _, q := range v.Figures.Queues {
		p.Queues = append(p.Queues, queueRow{q, page.Part(nextOf(v, q.Name, 1))})
	}
	var found threads
	_, err := v.Bus.Call(v.Context(), client.Request{Operation: "list threads", Method: http.MethodGet, Path: "/threads"}, &found)
	p.Threads = page.Part(found, err)
	p.Others = found.Active
	for _, one := range v.Figures.Processes {
		p.Others -= one.Threads + one.Others
	}
	return p, nil
}

// nextOf are the jobs of a queue that run next.
func nextOf(v *page.Visit, queue string, limit int) (some []queuedJob, err error) {
	_, err = v.Bus.Call(v.Context(), client.Request{
		Operation: "list queued jobs", Method: http.MethodGet, Path: "/queues/" + url.PathEscape(queue) + "?limit=" + strconv.Itoa(limit),
	}, &some)
	return some, err
}

// queuePage is what the page of a queue shows.
type queuePage struct {
	Name string
	Jobs []queuedJob
}

func loadQueue(v *page.Visit) (any, error) {
	name := v.Path("queue")
	some, err := nextOf(v, name, view.PageSize)
	return queuePage{name, some}, err
}
