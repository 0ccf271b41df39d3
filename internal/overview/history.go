package overview

import "time"

// Subject is what a track is about: the bus if both are empty, else a subscriber or a topic.
type Subject struct{ Subscriber, Topic string }

// Point is what the history has of one step of time. Where it has nothing, all of it is NaN. Of a
// topic only In is known.
type Point struct {
	// In and Out are events/s that were published and acknowledged.
	In, Out float32
	// Succeeded and Failed are deliveries in the step, Dropped events.
	Succeeded, Failed, Dropped float32
	// Queued is a number of events, Oldest an age in seconds, Health from 0 to 100 (of the bus, that
	// of the worst). Used is Redis' memory in bytes, of the bus only.
	Queued, Oldest, Health, Used float32

	// These are of the bus only. Unreadable and Scrubbed count events that could not be read, and
	// threads that were taken for dead, in the step. Busy is the share of the workers' threads that
	// deliver, from 0 to 1, NaN if there is no thread; Waiting is the number of instant jobs of main.
	Unreadable, Scrubbed, Busy, Waiting float32
}

// Track is what the history has of a subject: a point for each step, oldest first. The last one
// ends at End.
type Track struct {
	End    time.Time
	Step   time.Duration
	Points []Point
}

// Range is how far back a track goes.
type Range struct {
	Name   string
	Step   time.Duration
	Points int
}

// The ranges of the history.
var (
	// Fast is 15 min in steps of 10 s.
	Fast = Range{"15m", 10 * time.Second, 90}
	// Slow is 6 h in steps of 2 min.
	Slow = Range{"6h", 2 * time.Minute, 180}
	// Day is 24 h in steps of 10 min, of the bus only.
	Day = Range{"24h", 10 * time.Minute, 144}
)

// Ranges are all ranges, the shortest first.
var Ranges = []Range{Fast, Slow, Day}

// Tracks finds what the figures of a subject have been. It is false if the history has nothing of
// it.
type Tracks func(of Subject, over Range) (Track, bool)
