package bench

import "context"

// ingest is single-event publishes.
func (s *site) ingest(ctx context.Context) error {
	for _, publishers := range s.size.publishers {
		for _, subscribers := range s.size.subscribers {
			if err := s.ingestRow(ctx, publishers, subscribers); err != nil {
				return err
			}
		}
	}
	return nil
}

// ingestRow measures the limits right before, since what else the machine does changes.
func (s *site) ingestRow(ctx context.Context, publishers, subscribers int) error {
	limit, err := s.limits(ctx, publishers, 0)
	if err != nil {
		return err
	}
	o, followed, err := s.runTrial(ctx, trial{publishers: publishers, subscribers: subscribers, most: usualMost, timeout: s.size.timeout}, s.deliverAll)
	if err != nil {
		return err
	}
	insertions := o.published * float64(subscribers)
	row := Row{{"publishers", publishers}, {"subscribers", subscribers}, {"publishes/s", o.published}}
	if s.own == nil {
		s.table.add(row, o.answers(""), followed)
		return nil
	}
	row = append(row, Row{{"no-op/s", limit.noop}, {"÷ no-op", o.published / limit.noop}, {"insertions/s", insertions}, {"RPUSH/s", limit.rpush}, {"÷ RPUSH", insertions / limit.rpush}}...)
	s.table.add(row, o.answers(""), o.cpuCells(Web, Redis, loadProcess), Row{{"no-op µs", limit.noopCPU}}, o.scriptCells(), followed)
	if publishers == usualPublishers && subscribers == 1 {
		s.report.figure(figurePublish, o.published/limit.noop)
		if _, known := o.cpu[Web]; known {
			s.report.figure(figurePublishCPU, o.cpu[Web]+o.cpu[Redis])
		}
	}
	if publishers == usualPublishers && subscribers == 100 {
		s.report.figure(figureFanOut, insertions/limit.rpush)
	}
	return nil
}

// deliverAll has a worker deliver what is queued, and says what became of every event.
func (s *site) deliverAll(ctx context.Context, t *test) (Row, error) {
	if s.own != nil {
		if err := s.own.startWorker(); err != nil {
			return nil, err
		}
	}
	followed, err := s.awaitAll(ctx, t)
	if err == nil && s.own != nil {
		err = s.own.stop(Worker)
	}
	return followed, err
}

// bulk is publishes of many events at once.
func (s *site) bulk(ctx context.Context) error {
	for _, array := range s.size.arrays {
		if err := s.bulkRow(ctx, array); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) bulkRow(ctx context.Context, array int) error {
	limit, err := s.limits(ctx, usualPublishers, array)
	if err != nil {
		return err
	}
	o, followed, err := s.runTrial(ctx, trial{publishers: usualPublishers, subscribers: 1, array: array, most: usualMost, timeout: s.size.timeout}, s.deliverAll)
	if err != nil {
		return err
	}
	s.table.add(Row{{"array", array}, {"events/s", o.published}, {"RPUSH/s", limit.rpush}, {"÷ RPUSH", o.published / limit.rpush},
		{"requests/s", o.perSecond()}, {"no-op/s", limit.noop}, {"÷ no-op", o.perSecond() / limit.noop}},
		o.answers(""), o.cpuCells(Web, Redis, loadProcess), o.scriptCells(), followed)
	if array == usualArray {
		s.report.figure(figureBulk, o.published/limit.rpush)
	}
	return nil
}
