package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies counts durations from 1 µs to 10 minutes, to three digits. It must not be used
// concurrently.
type Latencies struct{ histogram *hdrhistogram.Histogram }

func newLatencies() Latencies {
	return Latencies{hdrhistogram.New(1, (10 * time.Minute).Microseconds(), 3)}
}

// record counts a duration. One that is out of range counts as the nearest one that is not.
func (l Latencies) record(d time.Duration) {
	µs := min(max(1, d.Microseconds()), l.histogram.HighestTrackableValue())
	_ = l.histogram.RecordValue(µs) // it is in range
}

// Percentile returns the latency, in ms, that so many percent do not exceed.
func (l Latencies) Percentile(percent float64) float64 {
	return float64(l.histogram.ValueAtQuantile(percent)) / 1000
}
