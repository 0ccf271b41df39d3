package load

import "time"

// Samples are counts at times, in order.
type Samples []Sample

// Sample is a count at a time.
type Sample struct {
	At    time.Time
	Count int64
}

// Last is the latest sample.
func (s Samples) Last() Sample { return s[len(s)-1] }

// Rate is how fast the count grew from one value to another, per second.
func (s Samples) Rate(from, to int64) float64 {
	return float64(to-from) / s.Reached(to).Sub(s.Reached(from)).Seconds()
}

// Reached is when a count was reached, interpolated between two samples.
func (s Samples) Reached(count int64) time.Time {
	for i, next := range s {
		if next.Count < count {
			continue
		}
		if i == 0 || next.Count == s[i-1].Count {
			return next.At
		}
		last := s[i-1]
		part := float64(count-last.Count) / float64(next.Count-last.Count)
		return last.At.Add(time.Duration(part * float64(next.At.Sub(last.At))))
	}
	return s.Last().At
}
