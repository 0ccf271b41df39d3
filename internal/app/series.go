package app

import (
	"context"
	"time"

	"routemaster/internal/jobs/housekeeping"
	"routemaster/internal/machines/labelstore/labelstores"
	"routemaster/internal/store/stores"
	"routemaster/internal/telemetry"
)

// runSubscriberSeries has the recorder know all subscribers, as soon as Redis says who they are and
// every 10 s, until the context is done. Any process may be the first to lose events of one.
func runSubscriberSeries(ctx context.Context, all *stores.Stores, recorder *telemetry.Recorder) {
	ticker := time.NewTicker(housekeeping.SeriesInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, st := range all.All() {
			names, _ := st.SubscriberNames(ctx) // the connection's state logs that Redis is unavailable
			for _, name := range names {
				recorder.Subscriber(name)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// machineSeries returns a function that has the recorder know all machines. Each worker calls it.
func machineSeries(labels *labelstores.Stores, recorder *telemetry.Recorder) func(context.Context) error {
	return func(ctx context.Context) error {
		definitions, err := labels.Definitions(ctx)
		if err != nil {
			return err
		}
		for _, m := range definitions.Machines {
			recorder.Machine(m)
		}
		return nil
	}
}
