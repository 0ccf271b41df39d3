package doctor

import (
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// The scripts read gauges, and what they are compared with. Their headers say what they take and
// return.
var (
	scriptMoment = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "moment"))
	scriptSizes  = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "sizes"))
)

// findBatches looks for what does not fit in current batches, lanes and pending jobs.
func findBatches(e *Examination) {
	findCurrent(e)
	findLanes(e)
	findWorkers(e)
}
