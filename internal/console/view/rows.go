package view

import (
	"fmt"
	"html/template"
	"iter"
	"slices"
	"strconv"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// Table is a list that can be neither sorted nor filtered.
type Table[R any] struct {
	Heads []Head
	Rows  []R
}

// SubscriberRow is a subscriber in a list.
type SubscriberRow struct {
	overview.Subscriber
	// NextTry is in how many seconds a delivery may be tried again; nil if nothing holds it up.
	NextTry *float64
	// Spark is the queue in the last 15 min.
	Spark []float32
}

// Cells are the cells of the row, but for the first, which has the name.
func (r SubscriberRow) Cells() template.HTML {
	health := NumberCell(2, strconv.Itoa(r.Health))
	if r.Trend != 0 {
		health.Content = template.HTML(fmt.Sprintf(`<span class="trend">%+d</span> %d`, r.Trend, r.Health))
	}
	return Cells(
		Cell{Rank: 1, Content: State(r.State)},
		ChangingCell(1, format.Count(r.Queued)), ChangingCell(1, format.Age(r.OldestAge)),
		ChangingCell(2, format.Rate(r.Rate)), NumberCell(2, format.Share(r.Failed)), health,
		NumberCell(3, format.Age(r.SinceAttempt)), NumberCell(3, format.Age(r.NextTry)),
		Cell{Rank: 3, Content: Sparkline(r.Spark)},
	)
}

// SubscriberTable makes a table of subscribers.
func SubscriberTable(f overview.Figures, tracks overview.Tracks, some []overview.Subscriber) Table[SubscriberRow] {
	return Table[SubscriberRow]{Subscribers.Heads(), SubscriberRows(f, tracks, some)}
}

// SubscriberRows makes the rows of subscribers.
func SubscriberRows(f overview.Figures, tracks overview.Tracks, some []overview.Subscriber) []SubscriberRow {
	rows := make([]SubscriberRow, len(some))
	for i, s := range some {
		rows[i] = SubscriberRow{s, nextTry(s, f), Spark(overview.Subject{Subscriber: s.Name}, tracks, Queued)}
	}
	return rows
}

// nextTry is in how many seconds deliveries go on that are held up for a while.
func nextTry(s overview.Subscriber, f overview.Figures) *float64 {
	if s.Hold != overview.Throttled && s.Hold != overview.Paced || s.HoldUntil.Before(f.At) {
		return nil
	}
	return new(s.HoldUntil.Sub(f.At).Seconds())
}

// TopicRow is a topic in a list.
type TopicRow struct {
	overview.Topic
	// Spark is the incoming events of the last 15 min.
	Spark []float32
}

// Cells are the cells of the row, but for the first, which has the name.
func (r TopicRow) Cells() template.HTML {
	return Cells(
		Cell{Rank: 1, Content: State(r.State)},
		ChangingCell(1, format.Rate(r.Rate)), Cell{Rank: 3, Content: Sparkline(r.Spark)},
		NumberCell(2, format.Count(r.Events)), NumberCell(2, format.Count(int64(r.Subscribers))),
		Cell{Rank: 2, Content: template.HTML(template.HTMLEscapeString(r.Publisher))},
	)
}

// TopicTable makes a table of topics.
func TopicTable(tracks overview.Tracks, some []overview.Topic) Table[TopicRow] {
	return Table[TopicRow]{Topics.Heads(), TopicRows(tracks, some)}
}

// TopicRows makes the rows of topics.
func TopicRows(tracks overview.Tracks, some []overview.Topic) []TopicRow {
	rows := make([]TopicRow, len(some))
	for i, t := range some {
		rows[i] = TopicRow{t, Spark(overview.Subject{Topic: t.Name}, tracks, In)}
	}
	return rows
}

// SubscribersOf returns the subscribers of a topic, those in trouble first.
func SubscribersOf(f overview.Figures, topic string) (some []overview.Subscriber) {
	for _, s := range f.Subscribers {
		if slices.Contains(s.Topics, topic) {
			some = append(some, s)
		}
	}
	return Worst(some, len(some))
}

// First returns at most the first n elements of a list of the bus, and whether there are more.
func First[T any](n int, all iter.Seq2[T, error]) (some []T, more bool, err error) {
	for element, err := range all {
		if err != nil {
			return nil, false, err
		}
		if len(some) == n {
			return some, true, nil
		}
		some = append(some, element)
	}
	return some, false, nil
}
