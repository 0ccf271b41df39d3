package web

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/web/rest"
)

// overviewOperations are for every client and the operator.
func (a *API) overviewOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/overview", handle: a.getOverview,
			id: "getOverview", tag: "overview",
			summary: "Show how the bus is",
			about: "All who ask share a sample, which is at most 3 s old, 4.5 on a bus with many subscribers and " +
				"topics. The first that is taken has no rates unless the history has them.",
			returns: returns(http.StatusOK, "The figures, the state of every subscriber and topic, and what is wrong.", overview.Figures{}),
		},
		{
			method: http.MethodGet, path: "/overview/series", handle: a.getSeries,
			id: "getSeries", tag: "overview",
			summary: "Show what figures have been",
			about: "A value for each step, oldest first; null where nothing is known. What is not known of a subject" +
				" is missing, and of one without a history every list is.",
			params: []parameter{
				{
					name: "of", fallback: "bus",
					words: "bus, topic/ and the name of a topic, or subscriber/ and the name of a client.",
				},
				{
					name: "range", fallback: "15m", enum: rangeNames(),
					words: "How far back: 15m in steps of 10 s, 6h of 2 min, 24h of 10 min. The last is of the bus only.",
				},
			},
			returns: returns(http.StatusOK, "What the history has.", seriesView{}),
		},
	}
}

// getOverview responds with how the bus is. On which hosts its processes and Redis run is for root
// only.
func (a *API) getOverview(w http.ResponseWriter, r *http.Request) {
	figures := a.config.Live.Figures(r.Context())
	if figures.At.IsZero() { // Redis could not be read since this process has started
		a.Fail(w, r, bus.ErrUnavailable)
		return
	}
	if !rest.Caller(r).Root {
		figures.Processes = slices.Clone(figures.Processes) // the slice is shared
		for i := range figures.Processes {
			figures.Processes[i].Host, figures.Processes[i].PID = "", 0
		}
		if figures.Memory != nil {
			memory := *figures.Memory
			memory.Node = ""
			figures.Memory = &memory
		}
	}
	rest.WriteJSON(w, http.StatusOK, figures)
}

// seriesView is the history of some figures: a value for each step, oldest first, null where the
// history has none.
type seriesView struct {
	Of          string  `json:"of"`
	Range       string  `json:"range" api:"enum=15m|6h|24h"`
	StepSeconds float64 `json:"step_seconds"`
	// When the last step ends, in ms since the Unix epoch; null if the history has nothing.
	EndsAt overview.Time `json:"ends_at"`

	Published column `json:"published_per_second,omitempty" api:"items.nullable"`
	Delivered column `json:"delivered_per_second,omitempty" api:"items.nullable"`
	// Deliveries in the step.
	Succeeded column `json:"succeeded_deliveries,omitempty" api:"items.nullable"`
	Failed    column `json:"failed_deliveries,omitempty" api:"items.nullable"`
	Dropped   column `json:"dropped_events,omitempty" api:"items.nullable"`
	Queued    column `json:"queued_events,omitempty" api:"items.nullable"`
	OldestAge column `json:"oldest_event_age_seconds,omitempty" api:"items.nullable"`
	// Of the bus, the health points of the worst subscriber.
	Health column `json:"health_points,omitempty" api:"items.nullable"`
	// Of the bus only.
	Used column `json:"redis_used_bytes,omitempty" api:"items.nullable"`
	// Of the bus only.
	Dead column `json:"dead_letter_events,omitempty" api:"items.nullable"`
	// Share of the workers' threads that deliver, of the bus only.
	Busy column `json:"busy_share,omitempty" api:"items.nullable"`
}

// column has the values of the steps.
type column []float32

// MarshalJSON writes NaN and infinities as null.
func (c column) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, v := range c {
		if i > 0 {
			text = append(text, ',')
		}
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendFloat(text, float64(v), 'g', -1, 32)
		}
	}
	return append(text, ']'), nil
}

// getSeries responds with the history of figures: of the bus, a topic or a subscriber.
func (a *API) getSeries(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	view := seriesView{Of: q.Get("of"), Range: q.Get("range")}
	if view.Of == "" {
		view.Of = "bus"
	}
	of := readSubject(q, view.Of)
	over := overview.Fast
	if name := rest.Word(q, "range", rangeNames()); name != "" {
		over = overview.Ranges[slices.Index(rangeNames(), name)]
	}
	if err := q.Err(); err != nil {
		a.Fail(w, r, err)
		return
	}
	view.Range, view.StepSeconds = over.Name, over.Step.Seconds()
	if track, known := a.config.Live.Tracks(r.Context())(of, over); known {
		view.EndsAt = overview.Time{Time: track.End}
		view.fill(of, track)
	}
	rest.WriteJSON(w, http.StatusOK, view)
}

func rangeNames() (names []string) {
	for _, r := range overview.Ranges {
		names = append(names, r.Name)
	}
	return names
}

// readSubject reads the subject of a track: bus, topic/ or subscriber/ and a name.
func readSubject(q *rest.Query, text string) (of overview.Subject) {
	kind, name, _ := strings.Cut(text, "/")
	switch {
	case text == "bus":
	case kind == "topic" && name != "":
		of.Topic = name
	case kind == "subscriber" && name != "":
		of.Subscriber = name
	default:
		q.Refuse("the query's of must be bus, topic/ and the name of a topic, or subscriber/ and that of a subscriber")
	}
	return of
}

// fill adds the columns that the history has of a subject.
func (v *seriesView) fill(of overview.Subject, track overview.Track) {
	if of.Subscriber == "" {
		v.Published = track.Values(overview.In)
	}
	if of.Topic != "" {
		return
	}
	v.Delivered = track.Values(overview.Out)
	v.Succeeded = track.Values(overview.Succeeded)
	v.Failed = track.Values(overview.Failed)
	v.Dropped = track.Values(overview.Dropped)
	v.Queued = track.Values(overview.Queued)
	v.OldestAge = track.Values(overview.Oldest)
	v.Health = track.Values(overview.Health)
	if of == (overview.Subject{}) {
		v.Dead = track.Values(overview.Dead)
		v.Used = track.Values(overview.Used)
		v.Busy = track.Values(overview.Busy)
	}
}
