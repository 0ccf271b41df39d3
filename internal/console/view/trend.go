package view

import (
	"math"
	"time"

	"routemaster/internal/overview"
)

// Trend describes a line of a chart in words.
type Trend struct {
	// Title is the line's; Value is the last one that is known.
	Title, Value string
	// Course is [rising] or [falling], since Since; empty if it is neither.
	Course string
	Since  time.Time
	// Low and High are the least and the greatest value, in the last Over; empty if there is but one
	// value.
	Low, High, Over string
}

// The courses of trends.
const (
	rising  = "rising"
	falling = "falling"
)

const (
	// steps is for how many points a course must last, so that no wave is taken for one.
	steps = 5
	// change is by which factor a value must have changed.
	change = 1.5
	// near is which share of the whole span counts as its end.
	near = .02
)

// overs are ranges in words.
var overs = map[string]string{overview.Fast.Name: "15 min", overview.Slow.Name: "6 h"}

// trendOf makes the trend of a line: the value of now, and its course in the longest range that the
// history has of the subject. It is false if no value is known.
func trendOf(of overview.Subject, tracks overview.Tracks, line Line) (t Trend, known bool) {
	t.Title = line.Title
	var low, high float32
	for _, over := range []overview.Range{overview.Fast, overview.Slow} {
		track, ok := tracks(of, over)
		if !ok {
			continue
		}
		values := track.Values(line.of)
		c, ok := courseOf(values)
		if !ok {
			continue
		}
		if !known { // the shortest range has the newest value
			t.Value, known = line.write(ifKnown(c.last)), true
			low, high = c.low, c.high
		}
		low, high = min(low, c.low), max(high, c.high) // a longer range has the means of its longer steps
		t.Over, t.Course = overs[over.Name], c.word
		t.Since = track.End.Add(-time.Duration(len(values)-1-c.from) * track.Step)
		if t.Low, t.High = line.write(ifKnown(low)), line.write(ifKnown(high)); t.Low == t.High {
			t.Low, t.High = "", ""
		}
	}
	return t, known
}

// course is where values go. From is the point from which on they rise or fall.
type course struct {
	word            string
	from            int
	last, low, high float32
}

// courseOf finds the course of values; NaN is unknown. It is false if all are unknown.
func courseOf(values []float32) (c course, known bool) {
	for _, v := range values {
		switch {
		case math.IsNaN(float64(v)):
			continue
		case !known:
			c.low, c.high, known = v, v, true
		}
		c.last, c.low, c.high = v, min(c.low, v), max(c.high, v)
	}
	span := near * (c.high - c.low)
	if c.high < change*c.low || c.high == c.low {
		return c, known
	}
	switch {
	case c.last >= c.high-5*span:
		c.word, c.from = rising, lastWhere(values, func(v float32) bool { return v <= c.low+span })
	case c.last <= c.low+5*span:
		c.word, c.from = falling, lastWhere(values, func(v float32) bool { return v >= c.high-span })
	}
	if len(values)-1-c.from < steps {
		c.word = ""
	}
	return c, known
}

// lastWhere is the place of the last value that a condition holds for; some value fulfils it.
func lastWhere(values []float32, holds func(float32) bool) int {
	for i := len(values) - 1; i > 0; i-- {
		if holds(values[i]) { // false for NaN
			return i
		}
	}
	return 0
}

// ifKnown is a value of the history, nil if it has none.
func ifKnown(value float32) *float64 {
	if math.IsNaN(float64(value)) {
		return nil
	}
	return new(float64(value))
}
