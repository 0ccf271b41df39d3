// Package verdict says what is wrong with a bus, in words.
//
// [Judge] goes by a table of rules. A rule finds problems in the figures and in what they have
// been, and says with numbers what is wrong and what the bus does about it by itself.
package verdict

import (
	"cmp"
	"slices"

	"routemaster/internal/overview"
)

// judge has what problems are found in.
type judge struct {
	*overview.Figures
	sample overview.Sample
	tracks overview.Tracks
	// shown are the subscribers that a problem was found with.
	shown map[string]bool
	// idle is whether no worker runs.
	idle bool
}

// Judge sets the states of subscribers and topics, and the problems, worst first. An
// [overview.Sampler] made the figures from the sample, and tracks is the history until then, nil if
// there is none. If Redis could not be read, the figures are of the last time it could.
func Judge(f *overview.Figures, s overview.Sample, tracks overview.Tracks) {
	if tracks == nil {
		tracks = func(overview.Subject, overview.Range) (overview.Track, bool) { return overview.Track{}, false }
	}
	j := &judge{Figures: f, sample: s, tracks: tracks, shown: map[string]bool{}}
	for i := range f.Subscribers {
		f.Subscribers[i].State = j.subscriberState(f.Subscribers[i])
	}
	for i := range f.Topics {
		f.Topics[i].State = j.topicState(f.Topics[i])
	}
	f.Problems = []overview.Problem{}
	for _, r := range rules {
		found := r.find(j, r)
		for i := range found {
			found[i].Rule, found[i].Severity = r.Name, r.Severity
			if r.Severity == overview.Warning { // who loses events may have another problem
				j.shown[found[i].Subscriber] = true
			}
		}
		f.Problems = append(f.Problems, found...)
	}
}

// subscribers makes a problem of each subscriber of which something is true, unless another was
// found before, and unless no worker runs, which explains it. Those with most events come first.
func (j *judge) subscribers(is func(overview.Subscriber) bool, say func(overview.Subscriber) overview.Problem) (found []overview.Problem) {
	if j.idle {
		return nil
	}
	var worst []overview.Subscriber
	for _, sub := range j.Subscribers {
		if !j.shown[sub.Name] && is(sub) {
			worst = append(worst, sub)
		}
	}
	slices.SortFunc(worst, func(a, b overview.Subscriber) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Name, b.Name))
	})
	for _, sub := range worst {
		p := say(sub)
		p.Subscriber = sub.Name
		found = append(found, p)
	}
	return found
}

// in reports of a subscriber whether it is in a state.
func in(state overview.State) func(overview.Subscriber) bool {
	return func(sub overview.Subscriber) bool { return sub.State == state }
}

// one is a problem, or none.
func one(is bool, p func() overview.Problem) []overview.Problem {
	if !is {
		return nil
	}
	return []overview.Problem{p()}
}
