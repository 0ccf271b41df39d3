package jobs

import (
	"cmp"
	"context"
	"time"

	"routemaster/internal/telemetry"
)

// SeriesInterval is how often a worker calls the function of [SeriesOf]: so that a new type is
// scraped before any of its attempts can be lost, if its timeout is not very short.
const SeriesInterval = 10 * time.Second

// SeriesOf returns a function that begins the series of the attempts of all types. Each worker
// calls it, because any may be the first to complete one of their jobs. It costs one command in
// each partition.
func SeriesOf(all *Bus, recorder *telemetry.Recorder) func(context.Context) error {
	return func(ctx context.Context) error {
		return cmp.Or(all.Each(func(_ int, st *Store) error {
			names, err := st.TypeNames(ctx)
			for _, name := range names {
				for _, outcome := range []string{telemetry.Held, "accepted", "succeeded", "failed"} {
					recorder.Count(telemetry.JobAttempts, 0, name, outcome)
				}
				recorder.Count(telemetry.LostJobAttempts, 0, name)
			}
			return err
		})...)
	}
}
