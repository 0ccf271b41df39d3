package migrate

import (
	_ "embed"

	"routemaster/internal/rdb"
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

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptAnnounce = rdb.NewScript(store.Library, "originals().announce_migration()")
	scriptBatch    = rdb.NewScript(store.Library, batchLua)
	scriptCounter  = rdb.NewScript(store.Library, counterLua)
	scriptGauge    = rdb.NewScript(store.Library, gaugeLua)
)
