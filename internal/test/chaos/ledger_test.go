package chaos

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// ledger records the events that publishers and subscribers observed.
type ledger struct {
	mu           sync.Mutex
	publications map[int]*publication  // by number
	attempts     map[string][]*attempt // by subscriber or replay, as they were answered
	refusals     int                   // publishes without an answer, or with 503
	laneChanges  map[string][]period   // by subscriber
	complaints   []string
}

// period is between two moments.
type period struct{ since, until time.Time }

// publication is one event on its way into the bus. Until it is acknowledged, its publisher sends
// only events of the same request.
type publication struct {
	topic              string
	sent, acknowledged time.Time
}

// attempt is a batch that reached a subscriber; acknowledged is zero if the subscriber did not mean
// to.
type attempt struct {
	batch                 string
	numbers               []int
	arrived, acknowledged time.Time
}

func newLedger() *ledger {
	return &ledger{publications: map[int]*publication{}, attempts: map[string][]*attempt{}, laneChanges: map[string][]period{}}
}

func (l *ledger) publishing(topic string, numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range numbers {
		l.publications[number] = &publication{topic: topic, sent: time.Now()}
	}
}

func (l *ledger) acknowledge(numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range numbers {
		l.publications[number].acknowledged = time.Now()
	}
}

func (l *ledger) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// attempt notes a batch that a subscriber got, or that a replay brought it.
func (l *ledger) attempt(of string, a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts[of] = append(l.attempts[of], a)
}

// acknowledged is how many events were acknowledged to their publishers.
func (l *ledger) acknowledged() (events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.publications {
		if !p.acknowledged.IsZero() {
			events++
		}
	}
	return events
}

// acknowledgedIn are the numbers of the events of some topics that were acknowledged to their
// publishers.
func (l *ledger) acknowledgedIn(topics ...string) (numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, p := range l.publications {
		if !p.acknowledged.IsZero() && slices.Contains(topics, p.topic) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// changeLanes notes that the lanes of a subscriber have changed in a period.
func (l *ledger) changeLanes(of string, since, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.laneChanges[of] = append(l.laneChanges[of], period{since, until})
}

// lanesChanged is whether the lanes of a subscriber may have changed in a period: then its events
// may come in another order. The ledger is locked.
func (l *ledger) lanesChanged(of string, since, until time.Time) bool {
	return slices.ContainsFunc(l.laneChanges[of], func(p period) bool { return p.since.Before(until) && p.until.After(since) })
}

// complain records a violation.
func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints = append(l.complaints, fmt.Sprintf(format, args...))
}

// recovery is how long after an outage the first publish was acknowledged and the first delivery
// arrived. It is false while either has not come.
func (l *ledger) recovery(after outage) (publish, delivery time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const never = time.Duration(math.MaxInt64)
	publish, delivery = never, never
	for _, p := range l.publications {
		of := after.topic == "" || p.topic == after.topic
		if d := p.acknowledged.Sub(after.since); of && !p.acknowledged.IsZero() && d > 0 {
			publish = min(publish, d)
		}
	}
	for _, attempts := range l.attempts {
		for _, a := range attempts {
			if d := a.arrived.Sub(after.since); d > 0 {
				delivery = min(delivery, d)
			}
		}
	}
	return publish, delivery, publish != never && delivery != never
}
