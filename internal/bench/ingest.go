package bench

import (
	"context"

	"routemaster/internal/bench/stack"
)

// ingest is single-event publishes.
func (e *environment) ingest(ctx context.Context) error {
	for _, publishers := range e.size.publishers {
		for _, subscribers := range e.size.subscribers {
			if err := e.ingestRow(ctx, publishers, subscribers); err != nil {
				return err
			}
		}
	}
	return nil
}

// ingestRow measures the baseline right before, since the load of the host changes.
func (e *environment) ingestRow(ctx context.Context, publishers, subscribers int) error {
	base, err := e.publishBaseline(ctx, publishers, 0)
	if err != nil {
		return err
	}
	how := e.usual()
	how.publishers, how.subscribers = publishers, subscribers
	m, fate, err := e.runTrial(ctx, how, e.deliverAll)
	if err != nil {
		return err
	}
	row := Row{{"publishers", publishers}, {"subscribers", subscribers}, {"publishes/s", m.published}}
	if e.remote {
		e.table.add(row, m.responses(""), fate)
		return nil
	}
	insertions := m.published * float64(subscribers)
	e.table.add(row, Row{{"no-op/s", base.noop}, {"÷ no-op", m.published / base.noop},
		{"insertions/s", insertions}, {"RPUSH/s", base.rpush}, {"÷ RPUSH", insertions / base.rpush}},
		m.responses(""), m.cpuCells(stack.Web, stack.Redis, stack.Load), base.noopCPU, m.scriptCells(), fate)
	if publishers == usualPublishers && subscribers == 1 {
		e.report.set(figurePublish, m.published/base.noop)
		if _, known := m.cpu[stack.Web]; known {
			e.report.set(figurePublishCPU, m.cpu[stack.Web]+m.cpu[stack.Redis])
		}
	}
	if publishers == usualPublishers && subscribers == 100 {
		e.report.set(figureFanOut, insertions/base.rpush)
	}
	return nil
}

// bulk is publishes of many events at once.
func (e *environment) bulk(ctx context.Context) error {
	for _, array := range e.size.arrays {
		if err := e.bulkRow(ctx, array); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) bulkRow(ctx context.Context, array int) error {
	base, err := e.publishBaseline(ctx, usualPublishers, array)
	if err != nil {
		return err
	}
	how := e.usual()
	how.array = array
	m, fate, err := e.runTrial(ctx, how, e.deliverAll)
	if err != nil {
		return err
	}
	e.table.add(Row{{"array", array}, {"events/s", m.published},
		{"RPUSH/s", base.rpush}, {"÷ RPUSH", m.published / base.rpush},
		{"requests/s", m.PerSecond()}, {"no-op/s", base.noop}, {"÷ no-op", m.PerSecond() / base.noop}},
		m.responses(""), m.cpuCells(stack.Web, stack.Redis, stack.Load), m.scriptCells(), fate)
	if array == usualArray {
		e.report.set(figureBulk, m.published/base.rpush)
	}
	return nil
}
