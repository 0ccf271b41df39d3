package maintenance

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
)

// ScrubQueues requeues the jobs, of all queues but aux, of workers that have been silent for
// [bus.DeadAfter]. It is the handler of [bus.JobScrubQueues], whose other half is to go on with
// replays.
func (m *Maintenance) ScrubQueues(ctx context.Context, _ *queue.Task) queue.Result {
	m.copyReplays(ctx)
	queues := slices.DeleteFunc(m.queue.Names(), func(name bus.Queue) bool { return name == bus.QueueAux })
	return m.finish(bus.JobScrubQueues, m.scrub(ctx, queues...))
}

// ScrubAux is ScrubQueues for the aux queue. Every worker calls it; it is not a job. As a job it
// could be pending at a dead worker, and then it could not be enqueued to requeue itself.
func (m *Maintenance) ScrubAux(ctx context.Context) error {
	return m.scrub(ctx, bus.QueueAux)
}

// ScrubWorkers removes workers that have been silent for [bus.ForgetAfter], and requeues their
// jobs. It is the handler of [bus.JobScrubWorkers], whose other half is to tidy up.
func (m *Maintenance) ScrubWorkers(ctx context.Context, _ *queue.Task) queue.Result {
	m.tidy(ctx)
	return m.finish(bus.JobScrubWorkers, m.scrubWorkers(ctx))
}

func (m *Maintenance) scrub(ctx context.Context, queues ...bus.Queue) error {
	if !m.canDetectDeadWorkers() {
		return nil
	}
	now := m.now()
	if err := m.queue.CorrectHeartbeats(ctx, now); err != nil {
		return err
	}
	jobs, err := m.queue.Scrub(ctx, now.Add(-bus.DeadAfter), queues...)
	m.scrubbed("requeued jobs of dead workers", jobs, 0)
	return err
}

func (m *Maintenance) scrubWorkers(ctx context.Context) error {
	if !m.canDetectDeadWorkers() {
		return nil
	}
	jobs, workers, err := m.queue.ForgetWorkers(ctx, m.now().Add(-bus.ForgetAfter))
	m.scrubbed("requeued jobs of removed workers", jobs, workers)
	return err
}

// minRedisUptime is how long Redis must have been available before a worker's silence counts: while
// Redis is unavailable, no heartbeat arrives. It is longer than the interval of heartbeats.
const minRedisUptime = 10 * time.Second

// canDetectDeadWorkers returns false for a while after Redis was unavailable, because then all
// workers are silent, and while the clock of this process is wrong, or Redis's may be.
func (m *Maintenance) canDetectDeadWorkers() bool {
	if m.clockAgrees != nil && !m.clockAgrees() {
		return false
	}
	return m.now().Sub(m.queue.SteadySince()) >= minRedisUptime
}

// scrubbed records how many jobs were requeued and how many workers were removed, including those
// before an error.
func (m *Maintenance) scrubbed(event string, jobs, workers int) {
	m.recorder.Count(telemetry.ScrubbedJobs, jobs)
	m.recorder.Count(telemetry.ScrubbedWorkers, workers)
	if jobs > 0 {
		m.log.Warn(event, "jobs", jobs)
	}
}
