package jobs

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/telemetry"
)

// PurgeInterval is how often a worker calls [Archive.Purge], and so by how much too long a job may
// be kept.
const PurgeInterval = 30 * time.Second

// Archive looks after the ended jobs of a partition. Autodrop drops archived jobs first: their work
// is done, and no caller waits for them. Dropping one loses its outcome, and lets its id be
// enqueued again, except for a day if the job was to be tried once.
type Archive struct {
	store    *Store
	recorder *telemetry.Recorder // may be nil
	now      func() time.Time
}

// NewArchive makes an archive. The recorder may be nil.
func NewArchive(store *Store, recorder *telemetry.Recorder, now func() time.Time) *Archive {
	return &Archive{store: store, recorder: recorder, now: now}
}

// Purge removes archived jobs whose retention is over, and continues other housekeeping of job
// types. While there is no type it costs one command.
func (a *Archive) Purge(ctx context.Context) error {
	_, err := a.store.Purge(ctx, a.now(), func() bool { return ctx.Err() == nil })
	return err
}

// DropOldest drops the oldest of the archive, a slice, and returns how many jobs: 0 if none is
// left.
func (a *Archive) DropOldest(ctx context.Context) (int, error) {
	return a.store.DropArchived(ctx, a.now())
}

// Dropped records how many jobs were dropped to make room.
func (a *Archive) Dropped(log *slog.Logger, jobs int) {
	log.Warn("dropped the oldest archived jobs: redis is about to be full", "jobs", jobs)
	a.recorder.Count(telemetry.DroppedArchivedJobs, jobs)
}
