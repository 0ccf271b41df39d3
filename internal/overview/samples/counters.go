package samples

import (
	"context"
	"errors"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/telemetry"
)

// The counters of the whole bus.
var (
	unreadable = bus.NewCounter(telemetry.UnreadableEventsCounter)
	scrubbed   = bus.NewCounter(telemetry.ScrubbedWorkersCounter)
)

// errCounters is that the key of the counters is not of its type.
var errCounters = errors.New("the counters are none")

// readCounters reads the counters of the subscribers and of the bus, those of times if the sample
// is to have them.
func (c *Collector) readCounters(ctx context.Context, s *draft) error {
	asked := append(make([]bus.Counter, 0, 2+5*len(s.Subscribers)), unreadable, scrubbed)
	for _, sub := range s.Subscribers {
		asked = append(asked, dropped(sub.Name), deliveries(sub.Name, telemetry.Success), deliveries(sub.Name, telemetry.Failure))
		if s.timed {
			asked = append(asked, took(sub.Name), waited(sub.Name))
		}
	}
	counts, isRead := make([]int64, len(asked)), false
	err := c.partitions[0].stats.EachCounter(ctx, asked, func(place int, count int64) { counts[place], isRead = count, true })
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
	for i := range s.Subscribers {
		sub := &s.Subscribers[i]
		sub.Counts = overview.Counts{Dropped: next(), Succeeded: next(), Failed: next()}
		if s.timed {
			sub.Times = overview.Times{Took: next(), Waited: next()}
		}
	}
	return nil
}

func dropped(subscriber string) bus.Counter {
	return bus.NewCounter(telemetry.DroppedEventsCounter, telemetry.QueueTag(bus.ClientName(subscriber)))
}

func deliveries(subscriber string, status telemetry.Status) bus.Counter {
	return bus.NewCounter(telemetry.DeliveriesCounter, telemetry.QueueTag(bus.ClientName(subscriber)), telemetry.StatusTag(status))
}

func took(subscriber string) bus.Counter {
	return bus.NewCounter(telemetry.DeliveryTimeCounter, telemetry.QueueTag(bus.ClientName(subscriber)), telemetry.StatusTag(telemetry.Success))
}

func waited(subscriber string) bus.Counter {
	return bus.NewCounter(telemetry.LatencyCounter, telemetry.QueueTag(bus.ClientName(subscriber)))
}
