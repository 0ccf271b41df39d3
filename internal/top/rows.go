package top

import (
	"fmt"
	"slices"
	"strconv"

	"routemaster/internal/format"
	"routemaster/internal/overview"
	"routemaster/internal/terminal"
)

func newSubscriberTable() *table {
	return &table{title: "SUBSCRIBER", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "queued", title: "QUEUED", width: 10},
		{name: "oldest", title: "OLDEST", width: 7, spare: 3},
		{name: "rate", title: "OUT/S", width: 8, spare: 1},
		{name: "failed", title: "FAILED", width: 7, spare: 4},
		{name: "health", title: "HEALTH", width: 8, rising: true, spare: 2},
		{name: "state", title: "STATE", width: 9, spare: 5},
		{name: "condition", title: "CONDITION", width: 10, spare: 6},
		{name: "tried", title: "TRIED", width: 7, rising: true, spare: 7},
		{name: "dead", title: "DEAD", width: 7, spare: 8},
		{name: "dropped", title: "DROPPED", width: 9, spare: 9},
		{name: "batches", title: "BATCHES", width: 8, spare: 11},
		{name: "sent", title: "SENT", width: 13, spare: 10},
		{name: "topics", title: "TOPICS", width: 7, spare: 12},
	}}
}

func newTopicTable() *table {
	return &table{title: "TOPIC", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "rate", title: "IN/S", width: 8},
		{name: "events", title: "EVENTS", width: 13, spare: 1},
		{name: "subscribers", title: "SUBSCRIBERS", width: 12, spare: 2},
		{name: "publisher", title: "PUBLISHER", width: 20, textual: true, spare: 3},
	}}
}

func newJobTypeTable() *table {
	return &table{title: "JOB TYPE", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "queued", title: "QUEUED", width: 10},
		{name: "waiting", title: "WAITING", width: 10, spare: 4},
		{name: "in_progress", title: "IN PROGRESS", width: 15, spare: 1},
		{name: "oldest", title: "OLDEST", width: 7, spare: 5},
		{name: "done", title: "DONE/S", width: 8, spare: 2},
		{name: "failed", title: "FAILED/S", width: 9, spare: 6},
		{name: "expired", title: "EXPIRED/S", width: 10, spare: 7},
		{name: "state", title: "STATE", width: 7, spare: 3},
	}}
}

func newMachineTable() *table {
	return &table{title: "MACHINE", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "labels", title: "LABELS", width: 12},
		{name: "errored", title: "ERRORED", width: 9, spare: 1},
		{name: "moves", title: "MOVES/S", width: 9, spare: 3},
		{name: "failed", title: "FAILED/S", width: 9, spare: 2},
		{name: "unpublished", title: "UNPUBLISHED", width: 12, spare: 4},
	}}
}

func newClientTable() *table {
	return &table{title: "CLIENT", sortBy: 1, columns: []column{
		{name: "name", textual: true},
		{name: "kept", title: "KEPT", width: 12},
		{name: "limit", title: "MAY KEEP", width: 12, spare: 1},
		{name: "queued", title: "QUEUED", width: 12, spare: 2},
	}}
}

func number(n int64) cell {
	c := cell{text: format.Count(n), value: float64(n)}
	if n == 0 {
		c.level = idle
	}
	return c
}

func maybeNumber(n *int64) cell {
	if n == nil {
		return cell{text: format.Unknown, unknown: true, level: idle}
	}
	return number(*n)
}

func maybe(n *float64, write func(*float64) string) cell {
	if n == nil {
		return cell{text: format.Unknown, unknown: true, level: idle}
	}
	c := cell{text: write(n), value: *n}
	if *n == 0 {
		c.level = idle
	}
	return c
}

func subscriberRow(s overview.Subscriber) []cell {
	oldest, failed, dropped := maybe(s.OldestAge, format.Age), maybe(s.Failed, format.Share), maybeNumber(s.Dropped)
	oldest.level = oldestLevel(s)
	if s.Failed != nil && *s.Failed > 0 {
		failed.level = warning
		if *s.Failed >= 0.5 {
			failed.level = alarming
		}
	}
	if dropped.value > 0 {
		dropped.level = alarming
	}
	dead := maybeNumber(s.Dead)
	if dead.value > 0 {
		dead.level = warning
	}
	return []cell{
		{text: terminal.Escape(s.Name)}, number(s.Queued), oldest, maybe(s.Rate, format.Rate), failed, healthCell(s), holdCell(s), conditionCell(s),
		maybe(s.SinceAttempt, format.Age), dead, dropped, maybeNumber(s.Batches), number(s.Sent), number(int64(len(s.Topics))),
	}
}

// oldestLevel rates the age of an event, compared with the time that the subscriber lets it wait,
// by the limits of the example alerts.
func oldestLevel(s overview.Subscriber) level {
	switch {
	case s.OldestAge == nil:
		return idle
	case *s.OldestAge > s.Timeout+300:
		return alarming
	case *s.OldestAge > s.Timeout+30:
		return warning
	default:
		return usual
	}
}

func healthCell(s overview.Subscriber) cell {
	c := cell{text: strconv.Itoa(s.Health), value: float64(s.Health)}
	if s.Trend != 0 {
		c.text = fmt.Sprintf("%+d %d", s.Trend, s.Health)
	}
	switch {
	case s.Health < 25:
		c.level = alarming
	case s.Health < 75:
		c.level = warning
	}
	return c
}

// holds and conditions are in the order that they are sorted in, most important last.
var (
	holds      = []string{overview.Ready, overview.Paced, overview.Throttled, overview.Paused, overview.Blocked}
	conditions = []overview.State{
		overview.OK, overview.Idle, overview.Flaky, overview.Behind, overview.PausedState, overview.Failing, overview.Stalled, overview.Gone,
	}
)

func holdCell(s overview.Subscriber) cell {
	c := cell{text: terminal.Escape(s.Hold), value: float64(slices.Index(holds, s.Hold)), level: warning}
	switch s.Hold {
	case overview.Ready:
		c.level = idle
	case overview.Paced:
		c.level = usual
	}
	return c
}

func conditionCell(s overview.Subscriber) cell {
	c := cell{text: terminal.Escape(string(s.State)), value: float64(slices.Index(conditions, s.State)), level: warning}
	switch s.State {
	case overview.OK, overview.Idle:
		c.level = idle
	case overview.Failing, overview.Stalled, overview.Gone:
		c.level = alarming
	}
	return c
}

func topicRow(t overview.Topic) []cell {
	return []cell{
		{text: terminal.Escape(t.Name)}, maybe(t.Rate, format.Rate), number(t.Events), number(int64(t.Subscribers)), {text: terminal.Escape(t.Publisher)},
	}
}

func jobTypeRow(t overview.JobType) []cell {
	inProgress := number(t.InProgress)
	inProgress.text += " of " + format.Count(t.Concurrency)
	failed, state := maybe(t.Failed, format.Rate), cell{text: overview.Ready, level: idle}
	if failed.value > 0 {
		failed.level = warning
	}
	if t.Paused {
		state = cell{text: overview.Paused, value: 1, level: warning}
	}
	return []cell{
		{text: terminal.Escape(t.Name)}, number(t.Queued), number(t.Waiting), inProgress, maybe(t.OldestAge, format.Age),
		maybe(t.Succeeded, format.Rate), failed, maybe(t.Expired, format.Rate), state,
	}
}

func machineRow(m overview.Machine) []cell {
	errored, failed := number(m.Errored), maybe(m.Failed, format.Rate)
	for _, c := range []*cell{&errored, &failed} {
		if c.value > 0 {
			c.level = warning
		}
	}
	return []cell{
		{text: terminal.Escape(m.Name)}, number(m.Labels), errored, maybe(m.Moves, format.Rate), failed, number(m.Unpublished),
	}
}

// clientRow returns the row of a client's bytes. Kept bytes are marked at the example alerts'
// limit.
func clientRow(c overview.Client) []cell {
	kept, limit := size(c.Kept), cell{text: "any", unknown: true, level: idle}
	if c.Limit != nil {
		limit = size(*c.Limit)
	}
	if c.Share > 0.9 {
		kept.level = warning
	}
	return []cell{{text: terminal.Escape(c.Name)}, kept, limit, size(c.Queued)}
}

func size(bytes int64) cell {
	c := cell{text: format.Megabytes(bytes), value: float64(bytes)}
	if bytes == 0 {
		c.level = idle
	}
	return c
}
