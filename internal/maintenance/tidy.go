package maintenance

import (
	"context"
	"time"

	"routemaster/internal/telemetry"
)

// tidyTimeout bounds one run. The next run does the rest.
const tidyTimeout = time.Second

// tidy removes unused topics, and the counters of topics and clients that are gone. It does not
// retry a failure: the next run continues where this one stopped.
func (m *Maintenance) tidy(ctx context.Context) {
	all, err := m.tidyUntilTimeout(ctx, tidyTimeout)
	if all.Topics > 0 {
		m.log.Info("removed topics that nobody has used for a day", "topics", all.Topics)
	}
	if all.Counters > 0 {
		m.log.Debug("removed counters of what is gone", "counters", all.Counters)
	}
	telemetry.LogFailure(m.log, "could not tidy up", err)
}

// tidyUntilTimeout takes steps until the tidier has come to the end, the timeout has passed, or a
// step fails.
func (m *Maintenance) tidyUntilTimeout(ctx context.Context, timeout time.Duration) (all Tidied, err error) {
	deadline := m.now().Add(timeout)
	for !m.now().After(deadline) {
		step, done, err := m.tidier.Step(ctx, m.now())
		all.Topics += step.Topics
		all.Counters += step.Counters
		if done || err != nil {
			return all, err
		}
	}
	return all, nil
}
