package samples

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
	"routemaster/internal/telemetry"
)

// JobTypes reads the state of job types.
type JobTypes struct {
	// Count reads all types, and how many jobs of each there are.
	Count func(context.Context) ([]jobs.CountedType, error)
	// Counters reads counters of the bus. One that has never counted is 0.
	Counters func(context.Context, []bus.Counter) (map[bus.Counter]int64, error)
}

// JobType is a type, how many of its jobs have not ended and, by status, how many ever ended.
type JobType struct {
	jobs.CountedType
	Ended map[jobs.Status]int64
}

// Read reads the types and, if there are any, how many of their jobs have ended.
func (j JobTypes) Read(ctx context.Context) ([]JobType, error) {
	counted, err := j.Count(ctx)
	if err != nil || len(counted) == 0 {
		return nil, err
	}
	var counters []bus.Counter
	for _, t := range counted {
		for _, status := range jobs.Archived {
			counters = append(counters, endedJobs(string(t.Name), status)...)
		}
	}
	counts, err := j.Counters(ctx, counters)
	if err != nil {
		return nil, err
	}
	types := make([]JobType, len(counted))
	for i, t := range counted {
		types[i] = JobType{t, map[jobs.Status]int64{}}
		for _, status := range jobs.Archived {
			for _, c := range endedJobs(string(t.Name), status) {
				types[i].Ended[status] += counts[c]
			}
		}
	}
	return types, nil
}

// endedJobs are the counters of the jobs of a type that ended with a status: their sum is how many.
func endedJobs(name string, status jobs.Status) []bus.Counter {
	return []bus.Counter{
		telemetry.EndedJobs.Bus(name, string(status), telemetry.Web),
		telemetry.EndedJobs.Bus(name, string(status), telemetry.Worker),
	}
}

// Machines reads the state of state machines.
type Machines struct {
	// Count counts the labels of all machines.
	Count func(context.Context) ([]machines.Count, error)
	// Counters reads counters of the bus. One that has never counted is 0.
	Counters func(context.Context, []bus.Counter) (map[bus.Counter]int64, error)
}

// Machine is how many labels of a machine there are and, by the outcomes of
// [telemetry.BusOutcomes], what workers ever did for them.
type Machine struct {
	machines.Count
	Steps map[string]int64
}

// Read counts the labels and, if there are machines, reads what was done for them.
func (m Machines) Read(ctx context.Context) ([]Machine, error) {
	counted, err := m.Count(ctx)
	if err != nil || len(counted) == 0 {
		return nil, err
	}
	var counters []bus.Counter
	for _, count := range counted {
		for _, outcome := range telemetry.BusOutcomes {
			counters = append(counters, telemetry.BusLabelSteps.Bus(string(count.Machine), outcome))
		}
	}
	steps, err := m.Counters(ctx, counters)
	if err != nil {
		return nil, err
	}
	all := make([]Machine, len(counted))
	for i, count := range counted {
		all[i] = Machine{count, map[string]int64{}}
		for _, outcome := range telemetry.BusOutcomes {
			all[i].Steps[outcome] = steps[telemetry.BusLabelSteps.Bus(string(count.Machine), outcome)]
		}
	}
	return all, nil
}
