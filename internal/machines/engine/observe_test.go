package engine

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

// The labels of a state share a webhook: they fail together.
func TestAWebhookThatFailsForManyLabelsIsALineIn10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines rdbtest.Buffer
		r := Runner{log: telemetry.NewLogger(&lines, slog.LevelInfo, false)}
		for i := range 20 * 60 {
			visit := &Visit{Label: machines.Label{
				Machine: "buyers", State: "send_mail", Name: machines.LabelName(strconv.Itoa(i)),
			}}
			r.observe(visit, Result{Outcome: Attempted, Status: 500}, time.Second)
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		assert.InDelta(t, 7, strings.Count(lines.String(), "\n"), 1, "%s", &lines)
		assert.Contains(t, lines.String(), "times=")
	})
}
