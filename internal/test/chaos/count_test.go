package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// expected is the events that a subscriber or a replay must get.
type expected struct {
	// of is the subscriber, or the replay to one.
	of, subscriber string
	// due are the numbers of the events.
	due []int
	order
}

// count is the result of one subscriber.
type count struct {
	due, delivered, lost int
	// again counts the events that were delivered again, by the cause.
	again map[string]int
	// outOfOrder counts the events that came after a later one of their publisher, and of their order
	// key if the subscriber has lanes.
	outOfOrder int
	// deliveries are the batches acknowledged; nearFaults the ones among them so close to a fault that
	// it would have explained a repetition.
	deliveries, nearFaults int
	// wrong lists the findings that no fault explains.
	wrong []string
}

// order is the order in which a subscriber must get the events of a publisher.
type order struct {
	strict bool // also if it has refused some
	keyed  bool // only the events of one order key
}

// orderOf is the order of a subscriber with options (JSON).
func orderOf(options string) order {
	return order{strings.Contains(options, "strict_order"), strings.Contains(options, "lanes")}
}

// count compares the events that a subscriber got with the ones that it must get.
func (l *ledger) count(must expected, why faults) count {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempts, subscriber := l.attempts[must.of], must.subscriber
	slices.SortFunc(attempts, func(a, b *attempt) int { return a.arrived.Compare(b.arrived) })
	c := &counting{
		ledger: l, subscriber: subscriber, order: must.order, why: why, count: count{again: map[string]int{}},
		failed: map[int]bool{}, latest: map[int]*attempt{}, furthest: map[int]delivery{},
	}
	for _, a := range attempts {
		if !a.acknowledged.IsZero() {
			c.deliveries++
			if why.again(subscriber, a) != "" {
				c.nearFaults++
			}
		}
		for _, number := range a.numbers {
			c.add(number, a)
		}
	}
	for _, number := range must.due {
		c.due++
		if c.latest[number] != nil {
			c.delivered++
		} else {
			c.lost++
			c.blame("event %d was acknowledged at %s, and is lost", number, clock(l.publications[number].acknowledged))
		}
	}
	if others := len(c.latest) - c.delivered; others > 0 {
		c.blame("%d events that were not for it", others)
	}
	return c.count
}

// counting is a count under way.
type counting struct {
	count
	ledger     *ledger
	subscriber string
	order      order
	why        faults
	failed     map[int]bool     // whether the subscriber refused an event before
	latest     map[int]*attempt // the latest delivery of an event
	furthest   map[int]delivery // of events that come in order, the last that was delivered so far
}

// delivery is the first acknowledged delivery of an event.
type delivery struct {
	number int
	*attempt
}

// add takes account of one event of an attempt. Attempts come in the order of their arrival.
func (c *counting) add(number int, a *attempt) {
	publication := c.ledger.publications[number]
	if publication == nil {
		c.blame("event %d was never published", number)
		return
	}
	if a.acknowledged.IsZero() {
		c.failed[number] = !c.order.strict
		return
	}
	before := c.latest[number]
	c.latest[number] = a
	if before != nil {
		cause := c.why.again(c.subscriber, before)
		isOther := before.batch != a.batch && before.batch != "" && a.batch != "" // only subscribers with options get the batch
		if isOther && !c.why.failedOver(c.subscriber, publication.sent, a.arrived) {
			c.blame("event %d was stored twice, in %s and %s", number, before.batch, a.batch)
		}
		c.again[cause]++
		if cause == "" {
			c.blame("event %d was acknowledged at %s, and came again at %s", number, clock(before.acknowledged), clock(a.arrived))
		}
		return
	}
	sequence := number / numbersPerPublisher * orderKeys
	if c.order.keyed {
		sequence += orderKey(number)
	}
	furthest, found := c.furthest[sequence]
	if !found || number > furthest.number {
		c.furthest[sequence] = delivery{number, a}
		return
	}
	c.outOfOrder++
	changed := c.ledger.lanesChanged(c.subscriber, publication.sent, furthest.arrived)
	if !c.failed[number] && !changed && !c.why.late(c.subscriber, publication, furthest.attempt) {
		c.blame("event %d came at %s, after %d", number, clock(a.arrived), furthest.number)
	}
}

func (c *counting) blame(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func clock(t time.Time) string { return t.Format("05.000") }
