package overview

import (
	"math"
	"slices"
	"time"
)

// Figure is one of the figures of a [Track].
type Figure int

// The figures of tracks. Those up to Health are of subscribers and the bus, Took and Waited of
// subscribers in the shortest range, In is of topics and the bus, the others are of the bus only.
const (
	// Out is the rate at which events were acknowledged, in events/s.
	Out Figure = iota
	// Succeeded and Failed are deliveries in the step, Dropped events.
	Succeeded
	Failed
	Dropped
	// Queued is a number of events, Oldest an age in seconds, Health from 0 to 100 (of the bus, that
	// of the worst).
	Queued
	Oldest
	Health
	// Took and Waited are by how much [Times] grew in the step.
	Took
	Waited
	// In is the rate at which events were published, in events/s.
	In
	// Unreadable and Scrubbed count events that could not be read, and threads that were taken for
	// dead, in the step.
	Unreadable
	Scrubbed
	// Used is Redis' memory in bytes. Busy is the share of the workers' threads that deliver, from 0
	// to 1, not known if there is no thread.
	Used
	Busy
	// Waiting is the number of instant jobs of main, Dead the number of events in dead letters.
	Waiting
	Dead

	figures
)

// isTotal reports whether slots have a figure as a total, which only grows.
func (f Figure) isTotal() bool { return f <= Dropped || f >= Took && f <= Scrubbed }

// isRate reports whether a total is shown by the second: events are, deliveries and drops are not.
func (f Figure) isRate() bool { return f == Out || f == In }

var nan = float32(math.NaN())

// Track is the history of a subject: values at so many Steps, the last of which ends at End.
type Track struct {
	End   time.Time
	Step  time.Duration
	Steps int

	last func(f Figure, steps int) []float32
}

// Tracks returns the track of a subject, and false if the history does not have it.
type Tracks func(of Subject, over Range) (Track, bool)

// TrackOf makes a track of the values of its figures, oldest first: as many of each as there are
// points in the range.
func TrackOf(end time.Time, over Range, values map[Figure][]float32) Track {
	return Track{End: end, Step: over.Step, Steps: over.Points, last: func(f Figure, steps int) []float32 {
		if known := values[f]; known != nil {
			return slices.Clone(known[len(known)-steps:])
		}
		return slices.Repeat([]float32{nan}, steps)
	}}
}

// Values returns a figure at all steps, oldest first, NaN where unknown. The caller owns the slice.
// Steps that the history drops become unknown.
func (t Track) Values(f Figure) []float32 { return t.Last(f, t.Steps) }

// Last returns a figure at the last steps: so many, or all that there are.
func (t Track) Last(f Figure, steps int) []float32 {
	steps = min(max(steps, 0), t.Steps)
	if steps == 0 {
		return nil
	}
	return t.last(f, steps)
}
