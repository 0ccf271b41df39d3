package migrate

import (
	_ "embed"

	"routemaster/internal/store"
)

var (
	//go:embed lua/batch.lua
	batchLua string
	//go:embed lua/counter.lua
	counterLua string
	//go:embed lua/gauge.lua
	gaugeLua string
)

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptAnnounce = store.Script("announce_migration()", "jobs", "lanes", "batches", "originals")
	scriptBatch    = store.Script(batchLua, "jobs", "lanes", "batches", "originals")
	scriptCounter  = store.Script(counterLua)
	scriptGauge    = store.Script(gaugeLua)
)
