package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// backlog fills a queue and drains it, and gives the rate of each tenth.
func (s *site) backlog(ctx context.Context) error {
	for _, events := range s.size.backlogs {
		if err := s.oneBacklog(ctx, events); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) oneBacklog(ctx context.Context, events int64) error {
	conn, err := dialRedis(ctx, s.own.redis)
	if err != nil {
		return err
	}
	defer conn.close()
	t, err := s.prepare(ctx, trial{publishers: usualPublishers, subscribers: 1, array: usualArray, most: usualMost, timeout: s.size.timeout})
	if err != nil {
		return err
	}
	defer s.close(ctx, t)
	before, err := conn.usedMemory()
	if err != nil {
		return err
	}
	filled, err := t.fill(ctx, events)
	if err != nil {
		return err
	}
	closeAll(t.clients)
	after, err := conn.usedMemory()
	if err != nil {
		return err
	}
	if err := s.own.startWorker(); err != nil {
		return err
	}
	profiled := s.during(ctx, "drain", s.size.measured)
	drained, err := s.drain(ctx, t)
	if err = errors.Join(err, profiled()); err != nil {
		return err
	}
	followed, err := s.followed(ctx, t)
	if err != nil {
		return err
	}
	var ratios [2]float64
	for i, progress := range []samples{filled, drained} {
		tenths := Row{{"events", events}, {"per s", []string{"filled", "drained"}[i]}}
		for n := range int64(10) {
			tenths = append(tenths, Cell{strconv.FormatInt(n+1, 10), progress.rate(max(1, n*events/10), (n+1)*events/10)})
		}
		ratios[i] = tenths[11].Value.(float64) / tenths[2].Value.(float64)
		s.table.add(append(tenths, Cell{"last ÷ first", ratios[i]}))
	}
	each := float64(after-before) / float64(events)
	s.table.add(Row{{"events", events}, {"bytes/event", each}, {"packed bytes", s.packed}, {"÷ packed", each / float64(s.packed)}}, followed)
	s.report.figure(figureFill, ratios[0])
	s.report.figure(figureDrain, ratios[1])
	s.report.figure(figureMemory, each/float64(s.packed))
	s.report.figure(figureBacklogSize, float64(events))
	return s.own.stop(Worker)
}

// crowd is one topic with very many subscribers.
func (s *site) crowd(ctx context.Context) error {
	if err := s.own.startWorker(fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", s.size.threads)); err != nil {
		return err
	}
	rpush, err := s.rpush(ctx, usualPublishers, 1)
	if err != nil {
		return err
	}
	t, err := s.prepare(ctx, trial{publishers: usualPublishers, subscribers: s.size.crowd, most: usualMost, timeout: s.size.timeout})
	if err != nil {
		return err
	}
	defer s.close(ctx, t)
	o, err := s.measure(ctx, t)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := s.drain(ctx, t); err != nil {
		return err
	}
	drained := time.Since(began)
	followed, err := s.followed(ctx, t)
	if err != nil {
		return err
	}
	insertions := o.published * float64(s.size.crowd)
	s.table.add(Row{{"subscribers", s.size.crowd}, {"threads", s.size.threads}, {"publishes/s", o.published}, {"insertions/s", insertions}, {"RPUSH/s", rpush}, {"÷ RPUSH", insertions / rpush},
		{"delivered/s", o.delivered}, {"deliveries/s", o.deliveries}, {"rest in s", drained.Seconds()}}, o.answers(""), o.cpuCells(Web, Redis, Worker, Receiver), followed)
	if worker := s.own.usage()[Worker]; s.size.threads == threadsInCrowd && worker.peak > 0 {
		s.report.most(figureWorkerPeak, megabytes(worker.peak))
	}
	return nil
}

// restart is a worker that is restarted while it drains a backlog.
func (s *site) restart(ctx context.Context) error {
	t, err := s.prepare(ctx, trial{publishers: usualPublishers, subscribers: 1, array: usualArray, most: usualMost, timeout: s.size.timeout})
	if err != nil {
		return err
	}
	defer s.close(ctx, t)
	if _, err := t.fill(ctx, s.size.restart); err != nil {
		return err
	}
	if err := s.own.startWorker(); err != nil {
		return err
	}
	first, err := s.awaitTally(ctx, s.size.restart/3)
	if err != nil {
		return err
	}
	stopping := time.Now()
	if err := s.own.stop(Worker); err != nil {
		return err
	}
	stopped := time.Now()
	tally, err := s.receiver.tally(ctx)
	if err != nil {
		return err
	}
	if err := s.own.startWorker(); err != nil {
		return err
	}
	second, err := s.drain(ctx, t)
	if err != nil {
		return err
	}
	followed, err := s.followed(ctx, t)
	if err != nil {
		return err
	}
	s.table.add(Row{{"events", s.size.restart}, {"delivered/s before", first.rate(1, first[len(first)-1].count)},
		{"to stop, ms", float64(stopped.Sub(stopping).Microseconds()) / 1000},
		{"first delivery within ms", float64(second.after(tally.Distinct).Sub(stopped).Milliseconds())},
		{"delivered/s after", second.rate(tally.Distinct+1, s.size.restart)}}, followed)
	return nil
}

// awaitTally waits until so many events have arrived.
func (s *site) awaitTally(ctx context.Context, events int64) (progress samples, err error) {
	for len(progress) == 0 || progress[len(progress)-1].count < events {
		tally, err := s.receiver.tally(ctx)
		if err != nil {
			return nil, err
		}
		progress = append(progress, sample{time.Now(), tally.Distinct})
		if err := errors.Join(s.own.died(), sleep(ctx, pollEvery)); err != nil {
			return nil, err
		}
	}
	return progress, nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
