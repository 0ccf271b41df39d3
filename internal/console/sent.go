package console

import (
	"strconv"
	"time"

	"routemaster/client/subscriber"
	"routemaster/internal/console/view"
)

// sentPath is the page that follows an event published here.
const sentPath = topicPath + "/sent"

// sentPage is the data of that page.
type sentPage struct {
	Topic string
	At    time.Time
	// Rows are the topic's subscribers, those in trouble first, 50 at most.
	Rows []sentRow
}

// sentRow is a subscriber of the topic.
type sentRow struct {
	view.SubscriberRow
	// Since sums up the subscriber's deliveries since the event was published, in words.
	Since string
	// Attempts are the recorded attempts since then, if the visitor may see them.
	Attempts Panel[[]subscriber.Attempt]
}

// shownSent is of how many subscribers the attempts are read.
const shownSent = 5

func loadSent(v *Visit) (any, error) {
	t, err := findTopic(v, v.Path("topic"))
	if err != nil {
		return nil, err
	}
	ms, _ := strconv.ParseInt(v.Query("at"), 10, 64) // else all that is on record
	p := sentPage{Topic: t.Name, At: time.UnixMilli(ms)}
	some := view.SubscribersOf(v.Figures, t.Name)
	read := 0
	for _, row := range view.SubscriberRows(v.Figures, v.Tracks, some[:min(len(some), listedSubscribers)]) {
		r := sentRow{SubscriberRow: row, Since: sinceThen(row, v.Figures.At, p.At)}
		if read < shownSent && (v.Root || v.Client == row.Name) {
			read++
			r.Attempts = Part(attemptsSince(v, row.Name, p.At))
		}
		p.Rows = append(p.Rows, r)
	}
	return p, nil
}

// sinceThen describes the deliveries since a time, from the figures.
func sinceThen(row view.SubscriberRow, now, at time.Time) string {
	tried := row.SinceAttempt != nil && !now.Add(-time.Duration(*row.SinceAttempt*float64(time.Second))).Before(at)
	switch {
	case tried && row.Failure != "":
		return "failed: " + row.Failure
	case tried && row.Queued == 0:
		return "delivered"
	case row.Queued > 0:
		return "waits"
	}
	return "not known yet"
}

// attemptsSince are the attempts since a time that the bus has on record of the clients of a name.
func attemptsSince(v *Visit, name string, at time.Time) (some []subscriber.Attempt, err error) {
	all := []*subscriber.Subscriber{subscriber.New(v.Bus)}
	if v.Root {
		tokens, err := v.Tokens(name)
		if err != nil {
			return nil, err
		}
		all = all[:0]
		for _, t := range tokens {
			all = append(all, subscriber.Of(v.Bus, t.Token))
		}
	}
	for _, one := range all {
		for attempt, err := range one.Attempts(v.Context(), subscriber.AttemptFilter{}) {
			if HasStatus(err, 404) || err == nil && attempt.At.Before(at) {
				break
			}
			if err != nil {
				return nil, err
			}
			some = append(some, attempt)
		}
	}
	return some, nil
}
