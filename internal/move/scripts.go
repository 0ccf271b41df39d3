package move

import (
	"embed"
	"slices"

	"routemaster/internal/fence"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

var library = slices.Concat(store.Library, rdb.Library{rdb.ReadLua(luaFiles, "lib")})

// The scripts. Each file's header says what it takes, returns and keeps. All but the first return
// {0, 'moving'} besides, and change nothing, if the bus has another mark than this run has set.
var (
	scriptMark    = rdb.NewScript(library, rdb.ReadLua(luaFiles, "mark"))
	scriptTopics  = newScript("topics_put")
	scriptBegin   = newScript("copy_begin")
	scriptHold    = newScript("subscriber_hold")
	scriptRelease = newScript("subscriber_release")
	scriptFollow  = newScript("subscriber_follow")
)

func newScript(name string) fence.Script { return fence.New(library, rdb.ReadLua(luaFiles, name)) }
