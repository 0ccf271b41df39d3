package samples

import (
	"context"
	"errors"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/telemetry"
)

// The counters of the whole bus.
var (
	unreadable = telemetry.UnreadableEvents.Bus()
	scrubbed   = telemetry.ScrubbedWorkers.Bus()

	everPublished    = telemetry.PublishedEvents.BusTotal()
	everAcknowledged = telemetry.DeliveredEvents.BusTotal(telemetry.Success)
	everSucceeded    = telemetry.Deliveries.BusTotal(telemetry.Success)
	everFailed       = telemetry.Deliveries.BusTotal(telemetry.Failure)
	everDropped      = telemetry.DroppedEvents.BusTotal()
)

// errCounters is that the key of the counters is not of its type.
var errCounters = errors.New("the counters are none")

// asked are the counters of a sample, packed, which takes long. The next one mostly has the same.
type asked struct {
	names  []string // of the subscribers
	timed  bool
	packed []string
}

// update packs the counters of a sample unless they are the same.
func (a *asked) update(s *draft) {
	names := make([]string, len(s.Subscribers))
	for i := range s.Subscribers {
		names[i] = s.Subscribers[i].Name
	}
	if a.packed != nil && a.timed == s.timed && slices.Equal(a.names, names) {
		return
	}
	counters := []bus.Counter{unreadable, scrubbed, everPublished, everAcknowledged, everSucceeded, everFailed, everDropped}
	for _, name := range names {
		counters = append(counters, dropped(name), deliveries(name, telemetry.Success), deliveries(name, telemetry.Failure))
		if s.timed {
			counters = append(counters, took(name), waited(name))
		}
	}
	*a = asked{names, s.timed, inspect.PackCounters(counters)}
}

// readCounters reads the counters of the subscribers and of the bus, those of times if the sample
// is to have them.
func (c *Collector) readCounters(ctx context.Context, s *draft) error {
	c.asked.update(s)
	counts, isRead := make([]int64, len(c.asked.packed)), false
	err := c.partitions[0].inspector.EachCounter(ctx, c.asked.packed, func(place int, count int64) { counts[place], isRead = count, true })
	if err != nil {
		return err
	}
	if !isRead {
		return errCounters
	}
	next := func() (count int64) { // in the order in which they were asked for
		count, counts = counts[0], counts[1:]
		return count
	}
	s.Unreadable, s.Scrubbed = next(), next()
	s.Ever = overview.Ever{
		Published: next(), Acknowledged: next(), Counts: overview.Counts{Succeeded: next(), Failed: next(), Dropped: next()},
	}
	for i := range s.Subscribers {
		sub := &s.Subscribers[i]
		sub.Counts = overview.Counts{Dropped: next(), Succeeded: next(), Failed: next()}
		if s.timed {
			sub.Times = overview.Times{Took: next(), Waited: next()}
		}
	}
	return nil
}

func dropped(subscriber string) bus.Counter { return telemetry.DroppedEvents.Bus(subscriber) }

func deliveries(subscriber, status string) bus.Counter {
	return telemetry.Deliveries.Bus(subscriber, status)
}

func took(subscriber string) bus.Counter {
	return telemetry.DeliveryTime.Bus(subscriber, telemetry.Success)
}

func waited(subscriber string) bus.Counter { return telemetry.LastLatency.Bus(subscriber) }
