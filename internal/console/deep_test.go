package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
)

// replace replaces the value of a key of the bus.
func replace(d *consoletest.Desk, key, value string) {
	d.T.Helper()
	replaced := 0
	for _, p := range d.Partitions() {
		if p.Exists(d.T.Context(), p.Namespace()+key).Val() == 1 {
			require.NoError(d.T, p.Set(d.T.Context(), p.Namespace()+key, value, 0).Err())
			replaced++
		}
	}
	require.Equal(d.T, 1, replaced, key)
}

// TestWhatIsNestedDeepHasASmallPage shows values that were stored before their nesting was limited.
func TestWhatIsNestedDeepHasASmallPage(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	const depth = 900
	deep := strings.Repeat(`{"a":[`, depth/2) + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + strings.Repeat("]}", depth/2)
	long := `"` + strings.Repeat("x", 100_000) + `"`
	for key, page := range map[string]string{
		"machines:metadata:parcel/p1":                                       "machines/parcel/labels/p1",
		"work:data:" + strings.TrimPrefix(consoletest.WaitingJob, "job_"):   "job-types/invoice/jobs/" + consoletest.WaitingJob,
		"work:data:" + strings.TrimPrefix(consoletest.CancelledJob, "job_"): "job-types/invoice/jobs/" + consoletest.CancelledJob,
	} {
		value := deep
		if strings.HasSuffix(page, consoletest.CancelledJob) {
			value = long
		}
		replace(d, key, value)
		w := d.As(consoletest.Shop).Send(page, nil)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		assert.Less(t, w.Body.Len(), 128<<10, page)
		assert.Equal(t, value == long, strings.Contains(w.Body.String(), "(cut: this is the start of 100,002 bytes; the API has all of them)"), page)
	}
}
