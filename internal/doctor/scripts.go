package doctor

import (
	"embed"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptUnlisted     = script("unlisted", "jobs")
	scriptSubscriber   = script("subscriber", "jobs", "lanes", "batches", "subscribers")
	scriptSubscription = script("subscription", "jobs", "lanes", "batches")
	scriptCurrent      = script("current", "jobs", "lanes", "batches")
	scriptLane         = script("lane", "jobs", "lanes", "batches")
	scriptPending      = script("pending", "jobs")
	scriptJob          = script("job", "jobs", "lanes", "batches")
	scriptMoment       = store.Script(lua("moment"), "jobs", "lanes", "batches")
	scriptGauges       = script("gauges", "jobs")
	scriptRenamed      = script("renamed", "jobs", "lanes", "batches")
)

// script composes a check of libraries of the store and what all checks share.
func script(name string, libraries ...string) *rdb.Script {
	return store.Script(lua("lib/check")+lua(name), libraries...)
}

func lua(name string) string { return rdb.ReadLua(luaFiles, name) }
