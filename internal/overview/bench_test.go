package overview

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkVerdict computes and judges the figures of a bus with 1,000 subscribers, all of them
// with queued events, and 500 topics, with a full history.
func BenchmarkVerdict(b *testing.B) {
	now := Sample{At: judgedFrom}
	for i := range 500 {
		now.Topics = append(now.Topics, TopicState{Name: fmt.Sprint("topic-", i), Publisher: "shop"})
	}
	for i := range 1000 {
		now.Subscribers = append(now.Subscribers, SubscriberState{
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
	h := NewHistory()
	var sampler Sampler
	for step := range 2 * Slow.Points {
		h.Add(Slow, SlotOf(now))
		if step >= Slow.Points {
			h.Add(Fast, SlotOf(now))
			goOn(Fast.Step)
		} else {
			goOn(Slow.Step)
		}
	}
	for range 30 {
		goOn(2 * time.Second)
		sampler.Add(now)
	}
	h.Add(Fast, SlotOf(now))
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		goOn(2 * time.Second)
		for i := range now.Subscribers { // else all are delivered to
			now.Subscribers[i].OldestAt = judgedFrom
		}
		b.StartTimer()
		f := sampler.Add(now)
		Judge(&f, now, h.Track)
	}
}
