package main

import (
	"context"
	"math/rand/v2"
	"time"

	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb"
)

// makeHistory writes the history that workers would have recorded in the last 6 h, instead of
// waiting for it.
func (b *consoleBench) makeHistory(ctx context.Context) error {
	redis, err := rdb.Open(rdb.Options{URL: "redis://" + b.stack.Redis, Connections: 1})
	if err != nil {
		return err
	}
	defer redis.Close()
	now := time.Now()
	recent := now.Add(-time.Duration(overview.Fast.Points) * overview.Fast.Step)
	at := now.Add(-time.Duration(overview.Slow.Points) * overview.Slow.Step)
	for err == nil && at.Before(now) {
		err = samples.WriteSlot(ctx, redis.Partition(""), b.slot(at))
		if at.Before(recent) {
			at = at.Add(overview.Slow.Step)
		} else {
			at = at.Add(overview.Fast.Step)
		}
	}
	return err
}

// slot is the state, at a time, of a bus whose subscribers get 10 to 20 events/s each.
func (b *consoleBench) slot(at time.Time) overview.Slot {
	seconds := at.Unix() % 1_000_000
	s := overview.Slot{
		At: at, Bus: overview.Totals{Health: 100}, AllSubscribers: int64(b.size.fanOut), AllTopics: int64(b.topics()),
	}
	for i := range b.size.fanOut {
		t := overview.Totals{Sent: 10*seconds + rand.Int64N(100), Queued: rand.Int64N(1000), Health: 100}
		t.Took, t.Waited = 9*t.Sent, 50*t.Sent
		t.Succeeded, t.Oldest = t.Sent/10, time.Duration(t.Queued)*time.Millisecond
		s.Bus.Sent += t.Sent
		s.Bus.Queued += t.Queued
		s.Subscribers = append(s.Subscribers, overview.NamedTotals{Name: nameOf(i), Totals: t})
	}
	for i := range b.topics() {
		t := overview.TopicEvents{Name: topicOf(i), Events: 10*seconds + rand.Int64N(100)}
		s.Events += t.Events
		s.Topics = append(s.Topics, t)
	}
	return s
}
