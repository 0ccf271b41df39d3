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
	names  []string // of the clients
	packed []string
}

// counters returns the names of a sample's counters, packed.
func (c *Collector) counters(d *draft, clients []*overview.SubscriberState) []string {
	names := make([]string, len(clients))
	for i, client := range clients {
		names[i] = client.Name
	}
	if last, ok := c.asked[d.reader]; ok && slices.Equal(last.names, names) {
		return last.packed
	}
	var counters []bus.Counter
	if d.reader&watches != 0 {
		counters = append(counters, unreadable, scrubbed, everPublished, everAcknowledged, everSucceeded, everFailed, everDropped)
	}
	for _, name := range names {
		counters = append(counters, dropped(name), deliveries(name, telemetry.Success), deliveries(name, telemetry.Failure))
		switch d.reader {
		case Record:
			counters = append(counters, took(name), waited(name))
		case Scrape:
			counters = append(counters, events(name, telemetry.Success), events(name, telemetry.Failure))
		}
	}
	c.asked[d.reader] = asked{names, inspect.PackCounters(counters)}
	return c.asked[d.reader].packed
}

// readCounters reads the counters of clients and, for watches, of the bus.
func (c *Collector) readCounters(ctx context.Context, d *draft) error {
	var clients []*overview.SubscriberState
	for _, some := range [][]overview.SubscriberState{d.Subscribers, d.Others} {
		for i := range some {
			clients = append(clients, &some[i])
		}
	}
	packed := c.counters(d, clients)
	counts, isRead := make([]int64, len(packed)), len(packed) == 0
	if d.reader == Scrape {
		counts = slices.Repeat([]int64{overview.Uncounted}, len(packed))
	}
	err := c.partitions[0].inspector.EachCounter(ctx, packed, func(place int, count int64) { counts[place], isRead = count, true })
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
	if d.reader&watches != 0 {
		d.Unreadable, d.Scrubbed = next(), next()
		d.Ever = overview.Ever{
			Published: next(), Acknowledged: next(), Counts: overview.Counts{Succeeded: next(), Failed: next(), Dropped: next()},
		}
	}
	for _, client := range clients {
		client.Counts = overview.Counts{Dropped: next(), Succeeded: next(), Failed: next()}
		switch d.reader {
		case Record:
			client.Times = overview.Times{Took: next(), Waited: next()}
		case Scrape:
			client.SentEvents, client.FailedEvents = next(), next()
		}
	}
	return nil
}

func dropped(subscriber string) bus.Counter { return telemetry.DroppedEvents.Bus(subscriber) }

func deliveries(subscriber, status string) bus.Counter {
	return telemetry.Deliveries.Bus(subscriber, status)
}

func events(subscriber, status string) bus.Counter {
	return telemetry.DeliveredEvents.Bus(subscriber, status)
}

func took(subscriber string) bus.Counter {
	return telemetry.DeliveryTime.Bus(subscriber, telemetry.Success)
}

func waited(subscriber string) bus.Counter { return telemetry.LastLatency.Bus(subscriber) }
