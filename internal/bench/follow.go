package bench

import (
	"context"
	"time"
)

// patience bounds how long nothing may arrive while events are missing; settleWithin, how long the last
// settlement may take after the last delivery.
const (
	patience     = 20 * time.Second
	settleWithin = 20 * time.Second
	pollEvery    = 10 * time.Millisecond
)

// drain waits until the receiver has all, or nothing comes any more, and returns how that went.
func (s *site) drain(ctx context.Context, t *test) (progress samples, err error) {
	last := time.Now()
	for {
		tally, err := s.receiver.tally(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if len(progress) == 0 || tally.Distinct > progress[len(progress)-1].count {
			last = now
		}
		progress = append(progress, sample{now, tally.Distinct})
		if tally.Distinct >= t.expected() || now.Sub(last) > patience {
			return progress, nil
		}
		if s.own != nil {
			if err := s.own.died(); err != nil {
				return nil, err
			}
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

// awaitAll waits until all that was published has arrived, and says what became of every event.
func (s *site) awaitAll(ctx context.Context, t *test) (Row, error) {
	if _, err := s.drain(ctx, t); err != nil {
		return nil, err
	}
	return s.followed(ctx, t)
}

// followed says what became of every event, once it is drained.
func (s *site) followed(ctx context.Context, t *test) (Row, error) {
	tally, err := s.receiver.tally(ctx)
	if err != nil {
		return nil, err
	}
	left, err := s.leftOver(ctx)
	if err != nil {
		return nil, err
	}
	lost := t.expected() - tally.Distinct
	s.report.add(figureLost, lost)
	s.report.add(figureDuplicates, tally.Duplicates)
	s.report.add(figureOutOfOrder, tally.OutOfOrder)
	s.report.add(figureUnreadable, tally.Unreadable)
	row := Row{{"lost", lost}, {"dup.", tally.Duplicates}, {"disord.", tally.OutOfOrder}}
	if s.own != nil {
		s.report.add(figureLeftOver, left)
		row = append(row, Cell{"left", left})
	}
	return row, nil
}

// leftOver counts the keys that are left, once the last delivery is settled.
func (s *site) leftOver(ctx context.Context) (left int64, err error) {
	if s.own == nil {
		return 0, nil
	}
	conn, err := dialRedis(ctx, s.own.redis)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	for until := time.Now().Add(settleWithin); ; {
		if left, err = conn.leftOver(); err != nil || left == 0 || time.Now().After(until) {
			return left, err
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return left, err
		}
	}
}
