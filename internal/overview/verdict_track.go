package overview

import (
	"iter"
	"slices"
	"time"
)

// track is the history of a subject. The last missing steps are unknown.
type track struct {
	Track
	missing int
}

// condition may hold at a step. Where its figure is unknown, it neither holds nor fails.
type condition struct {
	figure Figure
	// with is another figure that it asks for, which may be NaN.
	with  Figure
	holds func(figure, with float32) bool
}

// is makes a condition of one figure.
func is(f Figure, holds func(float32) bool) condition {
	return condition{f, f, func(value, _ float32) bool { return holds(value) }}
}

// at is when a step of the track began.
func (t track) at(i int) time.Time { return t.End.Add(-time.Duration(t.Steps-i) * t.Step) }

// last returns a figure over the last duration, without the missing steps.
func (t track) last(over time.Duration, f Figure) []float32 {
	return t.Last(f, int(over/t.Step)-t.missing)
}

// acknowledges reports whether a delivery succeeded in the last so much time.
func (t track) acknowledges(over time.Duration) bool {
	return slices.ContainsFunc(t.last(over, Succeeded), func(n float32) bool { return n > 0 })
}

// knownOf returns the values of a figure that are known.
func knownOf(values []float32) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for i, v := range values {
			if v == v && !yield(i, float64(v)) { // not NaN
				return
			}
		}
	}
}

// sumOf adds up the known values of a figure, and counts them.
func sumOf(values []float32) (total float64, n int) {
	for _, v := range knownOf(values) {
		total, n = total+v, n+1
	}
	return total, n
}

// all reports whether a condition holds at all steps of the last so much time that are known, and
// whether most are; else it does not.
func (t track) all(over time.Duration, c condition) (holds, areKnown bool) {
	values, with, n := t.last(over, c.figure), t.last(over, c.with), 0
	holds = true
	for i, v := range knownOf(values) {
		n, holds = n+1, holds && c.holds(float32(v), with[i])
	}
	areKnown = n >= int(over/t.Step)*4/5
	return holds && areKnown, areKnown
}

// slope returns how much a figure has grown by the second in the last so much time. It is false if
// less than a minute of that is known.
func (t track) slope(over time.Duration, f Figure) (perSecond float64, ok bool) {
	first, last := -1, -1
	values := t.last(over, f)
	for i := range knownOf(values) {
		if last = i; first < 0 {
			first = i
		}
	}
	took := time.Duration(last-first) * t.Step
	if took < time.Minute {
		return 0, false
	}
	return float64(values[last]-values[first]) / took.Seconds(), true
}

// fast returns the track of the last 15 min, which is empty if there is none. The history ends when
// no worker writes it: later steps are unknown.
func (j *judge) fast(of Subject) track {
	t, ok := j.tracks(of, Fast)
	if !ok {
		t = Track{End: j.At, Step: Fast.Step}
	}
	return track{t, max(int(j.At.Sub(t.End)/t.Step), 0)}
}

// since returns when something began that holds now: the first step of the history from which on
// it held at all that are known, but for spans that are shorter than pause. It is zero if it began
// after the last step.
func (j *judge) since(of Subject, pause time.Duration, c condition) Time {
	began := j.At
	for _, over := range []Range{Fast, Slow} {
		t, ok := j.tracks(of, over)
		values, with := t.Values(c.figure), t.Values(c.with)
		ended := !ok
		for i := len(values) - 1; i >= 0 && !ended; i-- {
			switch at := (track{Track: t}).at(i); {
			case values[i] != values[i] || at.After(began): // NaN
			case c.holds(values[i], with[i]):
				began = at
			default:
				ended = began.Sub(at) > pause
			}
		}
		if ended {
			break
		}
	}
	if began.Equal(j.At) {
		return Time{}
	}
	return Time{Time: began}
}
