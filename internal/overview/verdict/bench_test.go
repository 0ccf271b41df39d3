package verdict

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"routemaster/internal/overview"
)

// BenchmarkVerdict makes figures of samples of a bus with 1,000 subscribers, to each of which
// something waits, and 500 topics, and judges them by a full history.
func BenchmarkVerdict(b *testing.B) {
	now := overview.Sample{At: start}
	for i := range 500 {
		now.Topics = append(now.Topics, overview.TopicState{Name: fmt.Sprint("topic-", i), Publisher: "shop"})
	}
	for i := range 1000 {
		now.Subscribers = append(now.Subscribers, overview.SubscriberState{
			Name: fmt.Sprint("service-", i), Topics: []string{now.Topics[i/2].Name}, Health: 100,
		})
	}
	goOn := func(in time.Duration) {
		now.At = now.At.Add(in)
		for i := range now.Topics {
			now.Topics[i].Events += rand.Int64N(100)
		}
		for i := range now.Subscribers {
			s := &now.Subscribers[i]
			s.Sent, s.Queued = s.Sent+rand.Int64N(100), 1+rand.Int64N(1000)
			s.Counts.Succeeded, s.OldestAt = s.Sent/10, now.At.Add(-time.Duration(s.Queued)*time.Millisecond)
		}
	}
	h := overview.NewHistory()
	var sampler overview.Sampler
	for step := range 2 * overview.Slow.Points {
		h.Add(overview.Slow, overview.SlotOf(now))
		if step >= overview.Slow.Points {
			h.Add(overview.Fast, overview.SlotOf(now))
			goOn(overview.Fast.Step)
		} else {
			goOn(overview.Slow.Step)
		}
	}
	for range 30 {
		goOn(2 * time.Second)
		sampler.Add(now)
	}
	h.Add(overview.Fast, overview.SlotOf(now))
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		goOn(2 * time.Second)
		for i := range now.Subscribers { // else all are delivered to
			now.Subscribers[i].OldestAt = start
		}
		b.StartTimer()
		f := sampler.Add(now)
		Judge(&f, now, h.Track)
	}
}
