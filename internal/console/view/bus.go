package view

import (
	"cmp"
	"slices"
	"strings"

	"routemaster/internal/overview"
)

// worst are the states of subscribers, worst first.
var worst = []overview.State{
	overview.Gone, overview.Stalled, overview.Failing, overview.Behind, overview.Flaky, overview.PausedState,
	overview.OK, overview.Idle,
}

// InTrouble are the states of subscribers that do not get their events.
var InTrouble = worst[:3]

// TroubleFilter filters a list of subscribers for those that are [InTrouble].
const TroubleFilter = "state:gone,stalled,failing"

// stateOrder orders the states of subscribers, worst first; unknown ones come last.
func stateOrder(s overview.State) int {
	if i := slices.Index(worst, s); i >= 0 {
		return i
	}
	return len(worst)
}

// Subscribers is the list of subscribers, those in trouble first.
var Subscribers = Kind[overview.Subscriber]{
	id: "subscribers", name: func(s *overview.Subscriber) string { return s.Name }, usual: "state",
	keys: map[string]func(*overview.Subscriber, string) bool{
		"state": func(s *overview.Subscriber, value string) bool { return oneOf(value, s.State) },
		"topic": func(s *overview.Subscriber, value string) bool { return slices.Contains(s.Topics, value) },
	},
	columns: []Column[overview.Subscriber]{
		{Name: "name", Title: "Name", Rank: 1, compare: by(func(s *overview.Subscriber) string { return s.Name })},
		{Name: "state", Title: "State", Figure: "state of a subscriber", Rank: 1, compare: worstFirst},
		{Name: "queued", Title: "Queued", Figure: "queued", Number: true, Rank: 1, descending: true, compare: by(func(s *overview.Subscriber) int64 { return s.Queued })},
		{Name: "oldest", Title: "Oldest", Figure: "oldest", Number: true, Rank: 1, descending: true, compare: byOptional(func(s *overview.Subscriber) *float64 { return s.OldestAge })},
		{Name: "out", Title: "Out/s", Figure: "out/s", Number: true, Rank: 2, descending: true, compare: byOptional(func(s *overview.Subscriber) *float64 { return s.Rate })},
		{Name: "failed", Title: "Failed", Figure: "failed", Number: true, Rank: 2, descending: true, compare: byOptional(func(s *overview.Subscriber) *float64 { return s.Failed })},
		{Name: "health", Title: "Health", Figure: "health", Number: true, Rank: 2, compare: by(func(s *overview.Subscriber) int { return s.Health })},
		{Name: "tried", Title: "Tried", Figure: "tried", Number: true, Rank: 3, compare: byOptional(func(s *overview.Subscriber) *float64 { return s.SinceAttempt })},
		{Name: "next", Title: "Next try", Figure: "next try", Number: true, Rank: 3},
		{Name: "history", Title: "15 min", Figure: "queued, 15 min", Rank: 3},
	},
}

// worstFirst orders subscribers by state, and within a state by their queued events.
func worstFirst(a, b *overview.Subscriber) int {
	return cmp.Or(cmp.Compare(stateOrder(a.State), stateOrder(b.State)), cmp.Compare(b.Queued, a.Queued))
}

// Worst returns the first n subscribers, those in trouble first.
func Worst(all []overview.Subscriber, n int) []overview.Subscriber {
	return first(n, all, worstFirst)
}

// CountInTrouble counts the subscribers that do not get their events.
func CountInTrouble(all []overview.Subscriber) (n int) {
	for _, s := range all {
		if slices.Contains(InTrouble, s.State) {
			n++
		}
	}
	return n
}

// Topics is the list of topics, by name.
var Topics = Kind[overview.Topic]{
	id: "topics", name: func(t *overview.Topic) string { return t.Name }, usual: "name",
	keys: map[string]func(*overview.Topic, string) bool{
		"state":     func(t *overview.Topic, value string) bool { return oneOf(value, t.State) },
		"publisher": func(t *overview.Topic, value string) bool { return strings.EqualFold(t.Publisher, value) },
	},
	columns: []Column[overview.Topic]{
		{Name: "name", Title: "Name", Rank: 1, compare: by(func(t *overview.Topic) string { return t.Name })},
		{Name: "state", Title: "State", Figure: "state of a topic", Rank: 1, compare: by(func(t *overview.Topic) int { return topicStateOrder(t.State) })},
		{Name: "in", Title: "In/s", Figure: "in/s", Number: true, Rank: 1, descending: true, compare: byOptional(func(t *overview.Topic) *float64 { return t.Rate })},
		{Name: "history", Title: "15 min", Figure: "in/s, 15 min", Rank: 3},
		{Name: "events", Title: "Events", Figure: "events", Number: true, Rank: 2, descending: true, compare: by(func(t *overview.Topic) int64 { return t.Events })},
		{Name: "subscribers", Title: "Subscribers", Figure: "subscribers", Number: true, Rank: 2, descending: true, compare: by(func(t *overview.Topic) int { return t.Subscribers })},
		{Name: "publisher", Title: "Publisher", Rank: 2, compare: by(func(t *overview.Topic) string { return t.Publisher })},
	},
}

// topicStateOrder orders the states of topics, worst first.
func topicStateOrder(s overview.State) int {
	return slices.Index([]overview.State{overview.Unheard, overview.Quiet, overview.Unclaimed, overview.OK}, s)
}

// Busiest returns the n topics with the most events/s, then with the most events ever.
func Busiest(all []overview.Topic, n int) []overview.Topic {
	return first(n, all, func(a, b *overview.Topic) int {
		return cmp.Or(optional(b.Rate, a.Rate), cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
}
