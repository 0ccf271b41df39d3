package load

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// Tally counts the events that a receiver has received since its run began.
type Tally struct {
	// Deliveries counts requests that were acknowledged, Refusals the others.
	Deliveries, Refusals int64
	// Distinct counts the events that came at least once, for each subscriber; Duplicates the
	// repetitions.
	Distinct, Duplicates int64
	// OutOfOrder counts the events that came after a later one of their publisher.
	OutOfOrder int64
	// Unreadable counts the deliveries with an event that was not as it was published.
	Unreadable int64
	// P50, P99, P999 and Max are latencies from when an event was due, in ms, since they were last
	// cleared.
	P50, P99, P999, Max float64
}

// follower keeps the tally of one run. It is safe for concurrent use.
type follower struct {
	mu      sync.Mutex
	prefix  string // of the paths of the run's subscribers
	relents bool   // accepts from now on the events that it refused
	tally   Tally
	streams map[string]*stream // by path and publisher
	latency Latencies
}

// stream is the events of one publisher to one subscriber.
type stream struct {
	seen []uint64 // a bit for each number
	next int64    // one more than the highest number
}

// add counts an event, and returns whether it is new, and whether a later one came before it.
func (s *stream) add(n int64) (fresh, late bool) {
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

// begin forgets everything, and follows the deliveries to paths with a prefix.
func (f *follower) begin(prefix string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prefix, f.relents = prefix, false
	f.tally, f.streams, f.latency = Tally{}, map[string]*stream{}, newLatencies()
}

// clearLatency begins a new interval.
func (f *follower) clearLatency() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latency.histogram.Reset()
}

func (f *follower) read() Tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	tally, ms := f.tally, f.latency.Percentile
	tally.P50, tally.P99, tally.P999, tally.Max = ms(50), ms(99), ms(99.9), ms(100)
	return tally
}

// follows says whether a path is of the run. The caller holds the lock.
func (f *follower) follows(path string) bool {
	return f.prefix != "" && strings.HasPrefix(path, f.prefix)
}

// relent makes the run refuse nothing from now on.
func (f *follower) relent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relents = true
}

// refuse reports whether a delivery of events to be refused is refused, and counts it. It does not
// refuse deliveries of other runs.
func (f *follower) refuse(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.relents || !f.follows(path) {
		return false
	}
	f.tally.Refusals++
	return true
}

// deliver counts a delivery. It ignores one to a subscriber of another run.
func (f *follower) deliver(path string, body []byte) {
	now := time.Now().UnixNano()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.follows(path) {
		return
	}
	f.tally.Deliveries++
	key := make([]byte, 0, 64)
	var current *stream // successive events are mostly of one publisher
	err := findMarks(body, func(m marks) {
		if current == nil || !bytes.HasSuffix(key, m.publisher()) {
			key = append(append(key[:0], path...), m.publisher()...)
			current = f.streams[string(key)]
			if current == nil {
				current = &stream{}
				f.streams[string(key)] = current
			}
		}
		fresh, late := current.add(m.number())
		if !fresh {
			f.tally.Duplicates++
			return
		}
		if late {
			f.tally.OutOfOrder++
		}
		f.tally.Distinct++
		f.latency.record(time.Duration(now - m.due()))
	})
	if err != nil {
		f.tally.Unreadable++
	}
}
