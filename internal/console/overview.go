package console

import (
	"net/url"
	"slices"

	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

// How many rows the overview has of each list.
const (
	worstSubscribers = 10
	busiestTopics    = 6
	largestClients   = 6
)

// overviewPage is the data of the overview, besides the figures.
type overviewPage struct {
	Problems []overview.Problem
	// More is how many problems there are besides.
	More        int
	Tiles       tiles
	Charts      []view.Chart
	Subscribers view.Table[view.SubscriberRow]
	Topics      view.Table[view.TopicRow]
	Clients     view.Table[view.ClientRow]
	// Versions are the versions of the processes, if they differ.
	Versions []string
}

// tiles are the small lines under the figures.
type tiles struct {
	In, Out, Queued, Oldest []float32
	Failing                 int
	// Workers is how many worker processes live.
	Workers int
}

// maxProblems is how many problems are shown in full.
const maxProblems = 5

func loadOverview(v *Visit) (any, error) {
	bus, f := overview.Subject{}, v.Figures
	p := overviewPage{
		Tiles: tiles{
			In: view.Spark(bus, v.Tracks, view.In), Out: view.Spark(bus, v.Tracks, view.Out),
			Queued: view.Spark(bus, v.Tracks, view.Queued), Oldest: view.Spark(bus, v.Tracks, view.Oldest),
			Failing: view.CountInTrouble(f.Subscribers), Workers: countWorkers(f.Processes),
		},
		Charts: []view.Chart{
			view.NewChart("rates", "Events in, out, dropped", bus, v.Tracks, view.In, view.Out, view.Dropped),
			view.NewChart("backlog", "Queued, oldest", bus, v.Tracks, view.Queued, view.Oldest),
		},
		Subscribers: view.SubscriberTable(v.Figures, v.Tracks, view.Worst(f.Subscribers, worstSubscribers)),
		Topics:      view.TopicTable(v.Tracks, view.Busiest(f.Topics, busiestTopics)),
		Clients:     view.ClientTable(f.Clients[:min(len(f.Clients), largestClients)]),
		Versions:    versions(f.Processes),
	}
	if slices.ContainsFunc(f.Subscribers, func(s overview.Subscriber) bool { return s.Dead != nil && *s.Dead > 0 }) {
		p.Charts = append(p.Charts, view.NewChart("dead", "Events in dead letters", bus, v.Tracks, view.Dead))
	}
	p.Problems = f.Problems[:min(len(f.Problems), maxProblems)]
	p.More = len(f.Problems) - len(p.Problems)
	return p, nil
}

// query is the state of a list as the URL has it.
func query(v *Visit) view.Query { return view.ParseQuery(v.Request.URL.Query()) }

// listPage is a page with a list.
type listPage[T, R any] struct {
	view.List[T]
	// Shown are the rows as the page has them.
	Shown []R
}

func loadSubscribers(v *Visit) (any, error) {
	l := view.Subscribers.Page(v.Figures.Subscribers, query(v))
	return listPage[overview.Subscriber, view.SubscriberRow]{l, view.SubscriberRows(v.Figures, v.Tracks, l.Rows)}, nil
}

func loadTopics(v *Visit) (any, error) {
	l := view.Topics.Page(v.Figures.Topics, query(v))
	return listPage[overview.Topic, view.TopicRow]{l, view.TopicRows(v.Tracks, l.Rows)}, nil
}

// versions returns the versions of the processes, if there are several.
func versions(all []overview.Process) (some []string) {
	seen := url.Values{}
	for _, p := range all {
		if !seen.Has(p.Version) {
			seen.Set(p.Version, "")
			some = append(some, p.Version)
		}
	}
	if len(some) < 2 {
		return nil
	}
	return some
}

func countWorkers(all []overview.Process) (n int) {
	for _, p := range all {
		if p.Kind == "worker" {
			n++
		}
	}
	return n
}
