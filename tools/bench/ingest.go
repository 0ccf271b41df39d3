package main

import (
	"context"

	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// usual is the trial on which the scenarios are based.
func (e *environment) usual() trial {
	return trial{publishers: usualPublishers, subscribers: 1, max: usualMax, timeout: e.size.timeout}
}

// ingest measures single-event publishes. The baseline is measured right before each, because the
// load of the host changes.
func (e *environment) ingest(ctx context.Context) error {
	for _, publishers := range e.size.publishers {
		for _, subscribers := range e.size.subscribers {
			base, err := e.publishBaseline(ctx, publishers, 0)
			if err != nil {
				return err
			}
			how := e.usual()
			how.publishers, how.subscribers = publishers, subscribers
			m, err := e.run(ctx, how)
			if err != nil {
				return err
			}
			e.addIngest(how, base, m)
		}
	}
	return nil
}

func (e *environment) addIngest(how trial, base publishBaseline, m measurement) {
	row := report.Cells("publishers", how.publishers, "subscribers", how.subscribers, "publishes/s", m.published)
	if e.remote {
		e.table.Add(row, m.responses(""), m.fate)
		return
	}
	insertions := m.published * float64(how.subscribers)
	e.table.Add(row, report.Cells("no-op/s", base.noop, "÷ no-op", m.published/base.noop,
		"insertions/s", insertions, "RPUSH/s", base.rpush, "÷ RPUSH", insertions/base.rpush), m.responses(""),
		m.publishing.CPUCells(stack.Web, stack.Redis, stack.Load), base.noopCPU, m.publishing.ScriptCells(), m.fate)
	if how.publishers == usualPublishers && how.subscribers == 1 {
		e.report.Set(report.Publish, m.published/base.noop)
		if cpu, known := m.publishing.CPUTime(stack.Web, stack.Redis).(float64); known {
			e.report.Set(report.PublishCPU, cpu)
		}
	}
	if how.publishers == usualPublishers && how.subscribers == 100 {
		e.report.Set(report.FanOut, insertions/base.rpush)
	}
}

// bulk measures publishes of many events at once.
func (e *environment) bulk(ctx context.Context) error {
	for _, array := range e.size.arrays {
		base, err := e.publishBaseline(ctx, usualPublishers, array)
		if err != nil {
			return err
		}
		how := e.usual()
		how.array = array
		m, err := e.run(ctx, how)
		if err != nil {
			return err
		}
		e.table.Add(report.Cells("array", array, "events/s", m.published,
			"RPUSH/s", base.rpush, "÷ RPUSH", m.published/base.rpush,
			"requests/s", m.PerSecond(), "no-op/s", base.noop, "÷ no-op", m.PerSecond()/base.noop), m.responses(""),
			m.publishing.CPUCells(stack.Web, stack.Redis, stack.Load), m.publishing.ScriptCells(), m.fate)
		if array == usualArray {
			e.report.Set(report.Bulk, m.published/base.rpush)
		}
	}
	return nil
}
