// Package batches examines batches with their jobs: current batches, lanes, states, the entries of
// both queues, pending jobs, and the gauges.
package batches

import (
	"context"
	"embed"

	"routemaster/internal/doctor/exam"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// The keys without a namespace, as findings show them.
var (
	keys = store.Keys{}
	jobs = queue.Keys{}
)

//go:embed lua
var luaFiles embed.FS

// The scripts read gauges, and what they are compared with. Their headers say what they take and
// return.
var (
	scriptMoment = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "moment"))
	scriptSizes  = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "sizes"))
)

// Find looks for what does not fit in current batches, lanes, pending jobs and batches' states.
func Find(e *exam.Examination) {
	findCurrent(e)
	findLanes(e)
	findWorkers(e)
	findStates(e)
}

// Check looks again at the entries of queues, and then at the counts of what is left of older
// lanes, and at the gauges, which repairs may have changed.
func Check(ctx context.Context, e *exam.Examination) error {
	for _, q := range e.QueueNames() {
		if err := checkJobs(ctx, e, q); err != nil {
			return err
		}
	}
	if err := checkOlder(ctx, e); err != nil {
		return err
	}
	return checkGauges(ctx, e)
}
