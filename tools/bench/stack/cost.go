package stack

import (
	"context"
	"time"

	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
)

// snapshot is the usage of the processes so far, and the state of Redis.
type snapshot struct {
	usage map[string]Usage
	redis RedisStats
}

// snapshot is empty for only a receiver.
func (s *Stack) snapshot(ctx context.Context) (now snapshot, err error) {
	if s.nodes == nil {
		return now, nil
	}
	now.usage = s.Usage()
	now.redis, err = s.RedisStats(ctx)
	return now, err
}

// Cost is the cost of a number of events.
type Cost struct {
	Events int64
	// CPU is the CPU time of each process. Redis itself counts its own, in µs; the others are missing
	// where the system does not tell.
	CPU map[string]time.Duration
	// Redis is the work that Redis has done, and the memory that it took in addition.
	Redis RedisStats
}

// Spend returns the cost of a function. The caller sets the number of events.
func (s *Stack) Spend(ctx context.Context, do func() error) (c Cost, err error) {
	before, err := s.snapshot(ctx)
	if err != nil {
		return c, err
	}
	if err := do(); err != nil {
		return c, err
	}
	after, err := s.snapshot(ctx)
	c.CPU = map[string]time.Duration{}
	for name, u := range after.usage {
		c.CPU[name] = u.CPU - before.usage[name].CPU
	}
	c.Redis = after.redis.minus(before.redis)
	if s.nodes != nil {
		c.CPU[Redis] = c.Redis.CPU
	}
	return c, err
}

// Run runs a load. The cost is of its measured part, for each of the requests.
func (s *Stack) Run(ctx context.Context, l load.Load) (got load.Result, spent Cost, err error) {
	l.Around = func(measure func() error) (err error) {
		spent, err = s.Spend(ctx, measure)
		return err
	}
	got, err = l.Run(ctx)
	spent.Events = got.Requests
	return got, spent, err
}

// CPUTime is the CPU time of processes per event in µs, nil if it is not known.
func (c Cost) CPUTime(names ...string) any {
	var total time.Duration
	for _, name := range names {
		spent, known := c.CPU[name]
		if !known {
			return nil
		}
		total += spent
	}
	return float64(total.Microseconds()) / float64(max(1, c.Events))
}

// ScriptCells are the events per run of a script, and the time of scripts per event. They are only
// meaningful while Redis does nothing else.
func (c Cost) ScriptCells() report.Row {
	return report.Cells("events/script", float64(c.Events)/float64(c.Redis.Scripts),
		"script µs/event", float64(c.Redis.ScriptTime.Nanoseconds())/1000/float64(c.Events))
}

// CommandCells are the scripts and commands that Redis ran for each event, under the event's name,
// and the time of the scripts.
func (c Cost) CommandCells(event string) report.Row {
	count := float64(max(1, c.Events))
	return report.Cells("scripts/"+event, float64(c.Redis.Scripts)/count, "commands/"+event, float64(c.Redis.Commands)/count,
		"script µs/"+event, float64(c.Redis.ScriptTime.Nanoseconds())/1000/count)
}

// CPUCells are the CPU time of each process per event.
func (c Cost) CPUCells(names ...string) (row report.Row) {
	for _, name := range names {
		row = append(row, report.Cell{Name: name + " µs", Value: c.CPUTime(name)})
	}
	return row
}

// Idle is the cost of a worker that has nothing to do, over some time, once it has started.
func (s *Stack) Idle(ctx context.Context, over time.Duration) (c Cost, err error) {
	if err := s.StartWorker(ctx); err != nil {
		return c, err
	}
	if err := load.Sleep(ctx, over/2); err != nil {
		return c, err
	}
	if c, err = s.Spend(ctx, func() error { return load.Sleep(ctx, over) }); err != nil {
		return c, err
	}
	return c, s.Stop(Worker)
}

// RateCells are the costs of a worker per second.
func (c Cost) RateCells(over time.Duration) report.Row {
	seconds := over.Seconds()
	return report.Cells(
		"worker ms/s", float64(c.CPU[Worker].Milliseconds())/seconds, "redis ms/s", float64(c.CPU[Redis].Milliseconds())/seconds,
		"commands/s", float64(c.Redis.Commands)/seconds, "scripts/s", float64(c.Redis.Scripts)/seconds)
}
