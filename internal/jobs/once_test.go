package jobs_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb/rdbtest"
)

// TestWhatIsTriedOnceIsSentOnceItIsConfirmed starts without a replica that confirms that the job
// was taken.
func TestWhatIsTriedOnceIsSentOnceItIsConfirmed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := newService(t, with(http.StatusOK, `{"status":"succeeded"}`))
		s := newServedShop(t, server, service.url)
		first, second, ship := s.put("pay", jobstest.AtMostOnce), s.put("bill", jobstest.AtMostOnce), s.put("ship")
		var asked []jobs.ID
		unconfirmed := bus.ErrUnavailable
		s.config.Confirm = func(ctx context.Context, name jobs.TypeName, id jobs.ID, worker bus.WorkerID) error {
			require.NoError(t, s.Confirm(ctx, name, id, worker), "the worker has it")
			asked = append(asked, id)
			return unconfirmed
		}
		assert.Equal(t, 3, s.run(0))
		s.requireJob(first, jobs.Queued, 1, "")
		s.requireJob(second, jobs.Queued, 1, "")
		s.requireJob(ship, jobs.Succeeded, 3, "")
		assert.Equal(t, []jobs.ID{first}, asked, "the other waits without")
		assert.Len(t, service.got(), 1)
		assert.NotContains(t, s.page(), `job_attempts_total{job_type="pay"`)

		unconfirmed = nil
		assert.Equal(t, 2, s.run(time.Second))
		s.requireJob(first, jobs.Succeeded, 1, "")
		s.requireJob(second, jobs.Succeeded, 1, "")
		assert.ElementsMatch(t, []jobs.ID{first, first, second}, asked)
		assert.Len(t, service.got(), 3)
	})
}

// TestAJobWhoseEndIsForgotten makes Redis forget the answer to a job that is tried once, as a
// failover does: its worker gets it again.
func TestAJobWhoseEndIsForgotten(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := newService(t, with(http.StatusAccepted, ""))
		s := newServedShop(t, server, service.url)
		id := s.put("pay", jobstest.AtMostOnce)
		ctx, q, r := t.Context(), s.Queue(), s.runner(func() time.Time { return s.Now })
		taken, err := q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.Now)
		require.NoError(t, err)
		before := r.Run(ctx, taken.Task)
		assert.Len(t, service.got(), 1)

		taken, err = q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.Now)
		require.NoError(t, err)
		again := r.Run(ctx, taken.Task)
		assert.Len(t, service.got(), 1, "it is not sent again")
		assert.Equal(t, before.RetryAt, again.RetryAt)
		_, err = q.Complete(ctx, taken.Task, again, s.Now)
		require.NoError(t, err)
		s.requireJob(id, jobs.InProgress, 1, "")
		s.report("pay", id, 1, s.Now)
		s.requireJob(id, jobs.Succeeded, 1, "")

		_, err = s.DropArchived(ctx, s.Now)
		require.NoError(t, err)
		s.Pass(24 * time.Hour)
		s.Put("pay", func(n *jobs.NewJob) { n.ID = id })
		taken, err = q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.Now)
		require.NoError(t, err)
		r.Run(ctx, taken.Task)
		assert.Len(t, service.got(), 2, "another job that has the id is sent")
	})
}
