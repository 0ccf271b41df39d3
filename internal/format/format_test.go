package format_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/format"
)

func TestNumbersAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		assert.Equal(t, want, format.Count(n))
	}
	for thing, want := range map[string][]string{
		"event": {"0 events", "1 event", "1,204 events"}, "batch": {"0 batches", "1 batch", "1,204 batches"},
		"delivery": {"0 deliveries", "1 delivery", "1,204 deliveries"}, "retry": {"0 retries", "1 retry", "1,204 retries"},
	} {
		assert.Equal(t, want, []string{format.Plural(0, thing), format.Plural(1, thing), format.Plural(1204, thing)})
	}
	for n, want := range map[float64]string{0: "0", 0.5: "0.50", 9.99: "9.99", 12.34: "12.3", 99.5: "99.5", 123.4: "123", 45678.9: "45,679"} {
		assert.Equal(t, want, format.Rate(&n))
	}
	for n, want := range map[float64]string{0: "0.0s", 3.21: "3.2s", 61: "1m01s", 3599: "59m59s", 3700: "1h01m", 90000: "1d", 1e9: "11,574d"} {
		assert.Equal(t, want, format.Age(&n))
	}
	for n, want := range map[float64]string{0: "0%", 0.001: "<1%", 0.25: "25%", 1: "100%"} {
		assert.Equal(t, want, format.Share(&n))
	}
	assert.Equal(t, []string{"-", "-", "-"}, []string{format.Rate(nil), format.Age(nil), format.Share(nil)})
	assert.Equal(t, "61.2 MB", format.Megabytes(61_250_000))
	for d, want := range map[time.Duration]string{500 * time.Millisecond: "500ms", 2 * time.Second: "2s", 2 * time.Minute: "2m", 90 * time.Second: "1m30s", time.Hour: "1h"} {
		assert.Equal(t, want, format.Brief(d))
	}
}
