package bench

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tally is what a receiver has seen since its run began.
type Tally struct {
	// Deliveries are requests; HTTP2 are those of them that came over HTTP/2.
	Deliveries, HTTP2 int64
	// Distinct are the events that came at least once, counted for each subscriber; Duplicates came again.
	Distinct, Duplicates int64
	// OutOfOrder are the events that came after a later one of their publisher.
	OutOfOrder int64
	// Unreadable are the deliveries with an event that was not as it was published.
	Unreadable int64
	// Latency is from when the publish was due, in ms, since the last time it was cleared.
	P50, P99, P999, Max float64
}

// follower keeps the tally of one run. It is safe for concurrent use.
type follower struct {
	mu      sync.Mutex
	prefix  string // of the paths of the run's subscribers
	tally   Tally
	streams map[string]*stream // by path and publisher
	latency *hdrhistogram.Histogram
}

// stream is the events of one publisher to one subscriber.
type stream struct {
	seen []uint64 // bits
	next int64    // one more than the highest number
}

// note notes an event, and returns whether it is new, and whether a later one came before.
func (s *stream) note(n int64) (fresh, late bool) {
	for int(n/64) >= len(s.seen) {
		s.seen = append(s.seen, 0)
	}
	if s.seen[n/64]&(1<<(n%64)) != 0 {
		return false, false
	}
	s.seen[n/64] |= 1 << (n % 64)
	late = n < s.next
	s.next = max(s.next, n+1)
	return true, late
}

// begin forgets all, and follows the deliveries to paths that begin so.
func (f *follower) begin(prefix string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prefix, f.tally, f.streams, f.latency = prefix, Tally{}, map[string]*stream{}, newLatencies()
}

// clearLatency begins a new interval.
func (f *follower) clearLatency() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency.Reset()
}

func (f *follower) read() Tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	tally := f.tally
	ms := func(quantile float64) float64 { return float64(f.latency.ValueAtQuantile(quantile)) / 1000 }
	tally.P50, tally.P99, tally.P999, tally.Max = ms(50), ms(99), ms(99.9), ms(100)
	return tally
}

// deliver takes a delivery in. One to a subscriber of another run is not counted.
func (f *follower) deliver(path string, body []byte, http2 bool) {
	now := time.Now().UnixNano()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.prefix == "" || !strings.HasPrefix(path, f.prefix) {
		return
	}
	f.tally.Deliveries++
	if http2 {
		f.tally.HTTP2++
	}
	key := make([]byte, 0, 64)
	var last *stream
	err := eachMarks(body, func(m []byte) {
		if who := publisherOf(m); last == nil || !bytes.HasSuffix(key, who) {
			key = append(append(key[:0], path...), who...)
			last = f.streams[string(key)]
			if last == nil {
				last = &stream{}
				f.streams[string(key)] = last
			}
		}
		fresh, late := last.note(digits(numberOf(m)))
		switch {
		case !fresh:
			f.tally.Duplicates++
			return
		case late:
			f.tally.OutOfOrder++
		}
		f.tally.Distinct++
		_ = f.latency.RecordValue(min(max(1, (now-digits(dueOf(m)))/1000), f.latency.HighestTrackableValue()))
	})
	if err != nil {
		f.tally.Unreadable++
	}
}
