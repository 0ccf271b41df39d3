package housekeeping

import (
	"context"
	"time"

	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/telemetry"
)

// SeriesInterval is how often a worker calls the function of [SeriesOf]: so that a new type is
// scraped before any of its attempts can be lost, if its timeout is not very short.
const SeriesInterval = 10 * time.Second

// SeriesOf returns a function that has the recorder know all types. Each worker calls it, because
// any may be the first to see what becomes of their jobs. It costs one command.
func SeriesOf(store *jobstore.Store, recorder *telemetry.Recorder) func(context.Context) error {
	return func(ctx context.Context) error {
		names, err := store.TypeNames(ctx)
		for _, name := range names {
			recorder.JobType(name)
		}
		return err
	}
}
