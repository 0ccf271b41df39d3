package jobs

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

func TestAJobTypeThatFailsOftenIsALineIn10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines rdbtest.Buffer
		r := Runner{observer: observer{log: telemetry.NewLogger(&lines, slog.LevelInfo, false), now: time.Now}}
		run := &Run{Type: "paint-widgets", Attempts: 3, MaxAttempts: 3}
		for range 20 * 60 {
			ctx, observation := r.observer.begin(t.Context(), run)
			for _, a := range []outbound.Attempt{
				answered(500, ""), answered(503, ""), answered(200, "{"), silent(bus.ErrorTimeout), doubtful(silent(bus.ErrorTimeout)),
			} {
				observation.end(ctx, a, decide(run, a, time.Now(), 0))
			}
			r.Discarded(Ended{Type: run.Type, Status: Failed, Reason: "no report"})
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		for _, message := range []string{
			"failed to run a job", "lost an attempt at a job", "held back the jobs of a service that is not ready",
			"cannot read the report in a service's answer", "awaiting the report of a service that did not answer",
			"posting a job again over a new connection",
		} {
			assert.InDelta(t, 7, strings.Count(lines.String(), message), 1, "%s\n%s", message, &lines)
		}
		assert.Contains(t, lines.String(), "times=")
	})
}
