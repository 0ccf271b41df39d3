package telemetry

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestThePageHasAllMetrics looks for each row of the table, also for metrics that a scrape shows
// only once something has been counted.
func TestThePageHasAllMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics-and-alerts.md")
	require.NoError(t, err)
	for _, m := range all {
		if m.Name != "" {
			assert.Regexp(t, "(?m)^\\| `routemaster_"+m.Name+"\\b", string(page))
		}
	}
}
