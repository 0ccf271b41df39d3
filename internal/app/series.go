package app

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// runSubscriberSeries begins the series of all subscribers, as soon as Redis has listed them and
// every 10 s, until the context is done. Any process may be the first to lose events of one.
func runSubscriberSeries(ctx context.Context, all *store.Bus, recorder *telemetry.Recorder) {
	ticker := time.NewTicker(jobs.SeriesInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, st := range all.All() {
			names, _ := st.SubscriberNames(ctx) // the connection's state logs that Redis is unavailable
			for _, name := range names {
				beginSeries(recorder, string(name))
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// beginSeries begins the series of a subscriber's lost events and dead letters.
func beginSeries(recorder *telemetry.Recorder, subscriber string) {
	recorder.Count(telemetry.LostEvents, 0, subscriber, string(bus.LossReasons[0])) // and with it the others
	recorder.Count(telemetry.DeadLetterEvents, 0, subscriber, string(bus.DeathReasons[0]))
	recorder.Count(telemetry.DroppedDeadLetters, 0, subscriber)
}

// machineSeries returns a function that begins the series of all machines. Each worker calls it.
func machineSeries(labels *engine.Bus, recorder *telemetry.Recorder) func(context.Context) error {
	return func(ctx context.Context) error {
		definitions, err := labels.Definitions(ctx)
		if err != nil {
			return err
		}
		for _, m := range definitions.Machines {
			engine.BeginSeries(recorder, m)
		}
		return nil
	}
}
