package console

import (
	"routemaster/client/workers"
	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

// workPage is the data of the workers' page.
type workPage struct {
	Charts  []view.Chart
	Queues  []queueRow
	Threads Panel[workers.Threads]
	// Others is how many threads live that no process says are its own.
	Others int
}

// queueRow is a queue, and when the first of its jobs is due.
type queueRow struct {
	overview.Queue
	Next Panel[[]workers.Job]
}

func loadWork(v *Visit) (any, error) {
	p := workPage{Charts: []view.Chart{
		view.NewChart("busy", "Busy threads", overview.Subject{}, v.Tracks, view.Busy),
		view.NewChart("deliveries", "Deliveries that succeeded, failed", overview.Subject{}, v.Tracks, view.Succeeded, view.Failed),
	}}
	for _, q := range v.Figures.Queues {
		p.Queues = append(p.Queues, queueRow{q, Part(workers.Next(v.Context(), v.Bus, q.Name, 1))})
	}
	found, err := workers.Get(v.Context(), v.Bus)
	p.Threads = Part(found, err)
	p.Others = found.Active
	for _, one := range v.Figures.Processes {
		p.Others -= one.Threads + one.Others
	}
	return p, nil
}

// queuePage is the data of a queue's page.
type queuePage struct {
	Name string
	Jobs []workers.Job
}

func loadQueue(v *Visit) (any, error) {
	name := v.Path("queue")
	some, err := workers.Next(v.Context(), v.Bus, name, view.PageSize)
	return queuePage{name, some}, err
}
