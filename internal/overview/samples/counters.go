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
	counts, err := c.stats.ReadCounters(ctx, asked)
	if err != nil {
		return err
	}
	if len(counts) == 0 {
		return errCounters
	}
	s.Unreadable, s.Scrubbed = counts[unreadable], counts[scrubbed]
	for i := range s.Subscribers {
		sub := &s.Subscribers[i]
		sub.Counts = overview.Counts{
			Succeeded: counts[deliveries(sub.Name, telemetry.Success)],
			Failed:    counts[deliveries(sub.Name, telemetry.Failure)],
			Dropped:   counts[dropped(sub.Name)],
		}
		if s.timed {
			sub.Times = overview.Times{Took: counts[took(sub.Name)], Waited: counts[waited(sub.Name)]}
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
