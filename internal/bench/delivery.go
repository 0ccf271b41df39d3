package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// share is how much of what web takes is published while deliveries are measured.
const share = 0.7

// posts are the straight POSTs that deliveries are compared with, a second.
type posts struct{ http1, http2 float64 }

// most is the limit: the faster of the two.
func (p posts) most() float64 { return max(p.http1, p.http2) }

func (s *site) posts(ctx context.Context, connections, events int) (p posts, err error) {
	if p.http1, err = s.straight(ctx, connections, events, false); err == nil {
		p.http2, err = s.straight(ctx, connections, events, true)
	}
	return p, err
}

// endToEnd is events on their way through the whole bus.
func (s *site) endToEnd(ctx context.Context) error {
	rate, err := s.capacity(ctx)
	if err != nil {
		return err
	}
	s.table.note("Due are %.0f/s, %.1f of the %.0f/s that %d publishers reach with 1 subscriber and no worker; latency counts from when an event was due.", share*rate, share, rate, usualPublishers)
	if s.own != nil {
		if err := s.own.startWorker(); err != nil {
			return err
		}
		s.table.note("%s", "POSTs are the same deliveries straight to the receiver on 1 connection; ÷ is to the faster protocol.")
	}
	for _, most := range s.size.most {
		var limit posts
		if s.own != nil {
			if limit, err = s.posts(ctx, 1, most); err != nil {
				return err
			}
		}
		for _, timeout := range s.size.timeouts {
			if err := s.endToEndRow(ctx, trial{publishers: usualPublishers, subscribers: 1, most: most, timeout: timeout, rate: share * rate}, limit); err != nil {
				return err
			}
		}
	}
	if s.own == nil {
		return nil
	}
	if err := s.own.stop(Worker); err != nil {
		return err
	}
	for _, abreast := range []int{1, usualPublishers} {
		if err := s.oneByOne(ctx, abreast); err != nil {
			return err
		}
	}
	return nil
}

// capacity is how many events a second web takes.
func (s *site) capacity(ctx context.Context) (float64, error) {
	o, _, err := s.runTrial(ctx, trial{publishers: usualPublishers, subscribers: 1, most: usualMost, timeout: s.size.timeout}, s.deliverAll)
	return o.published, err
}

func (s *site) endToEndRow(ctx context.Context, how trial, limit posts) error {
	o, followed, err := s.runTrial(ctx, how, s.awaitAll)
	if err != nil {
		return err
	}
	row := Row{{"max", how.most}, {"timeout", how.timeout}, {"due/s", how.rate}, {"published/s", o.published}, {"delivered/s", o.delivered}, {"÷ due", o.delivered / how.rate}, {"deliveries/s", o.deliveries}}
	if s.own != nil {
		row = append(row, Row{{"POST/s h1", limit.http1}, {"POST/s h2", limit.http2}, {"÷ POST", o.deliveries / limit.most()}}...)
	}
	row = append(row, Row{{"p50 ms", o.tally.P50}, {"p99 ms", o.tally.P99}}...)
	if s.own != nil {
		row = append(row, o.cpuCells(Web, Redis, Worker, Receiver, loadProcess)...)
	}
	s.table.add(row, followed)
	if how.most == usualMost {
		s.report.least(figureKeepingUp, o.delivered/how.rate)
	}
	return nil
}

// oneByOne is deliveries of one event each, so many abreast, from a queue, while nobody publishes: the machine does
// nothing else, as it does while the straight POSTs are measured.
func (s *site) oneByOne(ctx context.Context, abreast int) error {
	limit, err := s.posts(ctx, abreast, 1)
	if err != nil {
		return err
	}
	t, err := s.prepare(ctx, trial{publishers: usualPublishers, subscribers: 1, array: usualArray, most: 1})
	if err != nil {
		return err
	}
	defer s.close(ctx, t)
	queue := s.size.queue
	if _, err := t.fill(ctx, queue); err != nil {
		return err
	}
	from, scriptsBefore, err := s.spent()
	if err != nil {
		return err
	}
	if err := s.own.startWorker(fmt.Sprintf("ROUTEMASTER_SUBSCRIBER_DELIVERIES=%d", abreast)); err != nil {
		return err
	}
	profiled := s.during(ctx, fmt.Sprintf("queue-abreast-%d", abreast), time.Second)
	progress, err := s.drain(ctx, t)
	if err = errors.Join(err, profiled()); err != nil {
		return err
	}
	to, scriptsAfter, err := s.spent()
	if err != nil {
		return err
	}
	o := outcome{events: queue, cpu: cpuPer(queue, from, to), scripts: scriptsAfter.since(scriptsBefore)}
	followed, err := s.followed(ctx, t)
	if err != nil {
		return err
	}
	if err := s.own.stop(Worker); err != nil {
		return err
	}
	rate := progress.rate(queue/10, queue)
	s.table.add(Row{{"from a queue, abreast", abreast}, {"max", 1}, {"deliveries/s", rate}, {"POST/s h1", limit.http1}, {"POST/s h2", limit.http2}, {"÷ POST", rate / limit.most()}},
		o.cpuCells(Redis, Worker, Receiver), o.scriptCells(), followed)
	s.report.figure(map[bool]string{true: figureDeliver, false: figureDeliver16}[abreast == 1], rate/limit.most())
	return nil
}

// openLoop is the latency of events at fixed rates.
func (s *site) openLoop(ctx context.Context) error {
	if s.own != nil {
		if err := s.own.startWorker(); err != nil {
			return err
		}
	}
	for _, rate := range s.size.rates {
		if err := s.openLoopRow(ctx, rate); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) openLoopRow(ctx context.Context, rate float64) error {
	o, followed, err := s.runTrial(ctx, trial{publishers: usualPublishers, subscribers: 1, most: usualMost, rate: rate}, s.awaitAll)
	if err != nil {
		return err
	}
	s.table.add(Row{{"events/s", rate}, {"published/s", o.published}, {"delivered/s", o.delivered},
		{"p50 ms", o.tally.P50}, {"p99 ms", o.tally.P99}, {"p99.9 ms", o.tally.P999}, {"max ms", o.tally.Max}},
		o.answers("answer "), followed)
	if rate == 1000 {
		s.report.figure(figureP50, o.tally.P50)
		s.report.figure(figureP99, o.tally.P99)
	}
	return nil
}
