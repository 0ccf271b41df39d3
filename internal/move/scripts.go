package move

import (
	"embed"
	"slices"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

var library = slices.Concat(store.Library, rdb.Library{rdb.ReadLua(luaFiles, "lib")})

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptMark    = newScript("mark")
	scriptTopics  = newScript("topics_put")
	scriptBegin   = newScript("copy_begin")
	scriptHold    = newScript("subscriber_hold")
	scriptRelease = newScript("subscriber_release")
	scriptSecrets = newScript("secrets_follow")
)

func newScript(name string) *rdb.Script { return rdb.NewScript(library, rdb.ReadLua(luaFiles, name)) }
