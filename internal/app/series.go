package app

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs/housekeeping"
	"routemaster/internal/machines/labelstore/labelstores"
	"routemaster/internal/store"
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
			_ = knowSubscribers(ctx, st, recorder) // the connection's state logs that Redis is unavailable
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func knowSubscribers(ctx context.Context, st *store.Store, recorder *telemetry.Recorder) error {
	p := st.Partition()
	tokens, err := p.SMembers(ctx, store.Keys{Namespace: p.Namespace()}.Subscribers()).Result()
	if err != nil || len(tokens) == 0 {
		return err
	}
	names, err := st.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		recorder.Subscriber(bus.PublicName(bus.Token(token), names[bus.Token(token)]))
	}
	return nil
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
