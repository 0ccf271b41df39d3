package verdict

import (
	"math"
	"slices"
	"time"

	"routemaster/internal/overview"
)

// figure is one of those of a point.
type figure func(overview.Point) float32

// track is what the history has of a subject.
type track struct{ overview.Track }

// at is when a step of the track began.
func (t track) at(i int) time.Time { return t.End.Add(-time.Duration(len(t.Points)-i) * t.Step) }

// last returns the points of the last so much time.
func (t track) last(over time.Duration) []overview.Point {
	return t.Points[max(len(t.Points)-int(over/t.Step), 0):]
}

// sum adds up what is known of a figure, and counts the points of which it is.
func sum(points []overview.Point, of figure) (total float64, n int) {
	for _, p := range points {
		if v := float64(of(p)); !math.IsNaN(v) {
			total, n = total+v, n+1
		}
	}
	return total, n
}

// all reports whether something holds in all points of the last so much time that are known, and
// whether most are. Of says which figure tells whether a point is known.
func (t track) all(over time.Duration, of figure, holds func(overview.Point) bool) bool {
	fails := func(p overview.Point) bool { return !math.IsNaN(float64(of(p))) && !holds(p) }
	return t.isKnown(over, of) && !slices.ContainsFunc(t.last(over), fails)
}

// isKnown reports whether a figure is known at most points of the last so much time.
func (t track) isKnown(over time.Duration, of figure) bool {
	_, n := sum(t.last(over), of)
	return n >= int(over/t.Step)*4/5
}

// slope returns how much a figure has grown by the second in the last so much time. It is false if
// less than a minute of that is known.
func (t track) slope(over time.Duration, of figure) (perSecond float64, known bool) {
	first, last := -1, -1
	points := t.last(over)
	for i, p := range points {
		if !math.IsNaN(float64(of(p))) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	took := time.Duration(last-first) * t.Step
	if took < time.Minute {
		return 0, false
	}
	return float64(of(points[last])-of(points[first])) / took.Seconds(), true
}

// fast returns the track of the last 15 min, which is empty if there is none. The history ends when
// no worker writes it: from then on nothing is known. The last track is kept: several rules in
// a row ask for that of the same subject.
func (j *judge) fast(of overview.Subject) track {
	if j.lastOf != nil && *j.lastOf == of {
		return j.last
	}
	t, ok := j.tracks(of, overview.Fast)
	if !ok {
		t = overview.Track{End: j.At, Step: overview.Fast.Step}
	}
	if missing := int(j.At.Sub(t.End) / t.Step); missing > 0 {
		t.End = t.End.Add(time.Duration(missing) * t.Step)
		known := copy(t.Points, t.Points[min(missing, len(t.Points)):])
		for i := range t.Points[known:] {
			t.Points[known+i] = overview.Unknown
		}
	}
	j.lastOf, j.last = &of, track{t}
	return j.last
}

// since returns when something began that holds now: the first point of the history from which on
// it held in all that are known, but for spans that are shorter than pause. It is zero if it began
// after the last point.
func (j *judge) since(of overview.Subject, known figure, pause time.Duration, holds func(overview.Point) bool) overview.Time {
	began := j.At
	for _, over := range []overview.Range{overview.Fast, overview.Slow} {
		t, ok := j.tracks(of, over)
		ended := !ok
		for i := len(t.Points) - 1; i >= 0 && !ended; i-- {
			switch at := (track{t}).at(i); {
			case math.IsNaN(float64(known(t.Points[i]))) || at.After(began):
			case holds(t.Points[i]):
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
		return overview.Time{}
	}
	return overview.Time{Time: began}
}

func queued(p overview.Point) float32    { return p.Queued }
func published(p overview.Point) float32 { return p.In }
