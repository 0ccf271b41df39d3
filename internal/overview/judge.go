package overview

import (
	"cmp"
	"slices"
)

// judge is the input of all rules.
type judge struct {
	*Figures
	sample Sample
	tracks Tracks
	// shown are the subscribers that a problem was found with.
	shown map[string]bool
	// idle is whether no worker runs.
	idle bool
}

// Judge sets the states of subscribers and topics, and the problems, worst first. An
// [Sampler] made the figures from the sample, and tracks is the history until then, nil if
// there is none. If Redis could not be read, the figures are of the last time it could.
func Judge(f *Figures, s Sample, tracks Tracks) {
	if tracks == nil {
		tracks = func(Subject, Range) (Track, bool) { return Track{}, false }
	}
	j := &judge{Figures: f, sample: s, tracks: tracks, shown: map[string]bool{}}
	for i := range f.Subscribers {
		f.Subscribers[i].State = j.subscriberState(f.Subscribers[i])
	}
	for i := range f.Topics {
		f.Topics[i].State = j.topicState(f.Topics[i])
	}
	f.Problems = []Problem{}
	for _, r := range rules {
		found := r.find(j, r)
		for i := range found {
			found[i].Rule, found[i].Severity = r.Name, r.Severity
			if r.Severity == Warning { // a subscriber that loses events may have another problem
				j.shown[found[i].Subscriber] = true
			}
		}
		f.Problems = append(f.Problems, found...)
	}
}

// subscribers makes a problem of each subscriber that matches, unless an earlier rule matched it,
// or no worker runs, which explains it. Subscribers with most events come first.
func (j *judge) subscribers(is func(Subscriber) bool, say func(Subscriber) Problem) (found []Problem) {
	if j.idle {
		return nil
	}
	var worst []Subscriber
	for _, sub := range j.Subscribers {
		if !j.shown[sub.Name] && is(sub) {
			worst = append(worst, sub)
		}
	}
	slices.SortFunc(worst, func(a, b Subscriber) int {
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
func in(state State) func(Subscriber) bool {
	return func(sub Subscriber) bool { return sub.State == state }
}

// one is a problem, or none.
func one(is bool, p func() Problem) []Problem {
	if !is {
		return nil
	}
	return []Problem{p()}
}
