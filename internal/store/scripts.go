package store

import (
	"embed"

	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptTopicPublish          = newScript("topic_publish", "jobs", "lanes", "batches", "idempotency", "owners")
	scriptTopicDelete           = newScript("topic_delete", "owners")
	scriptTopicInherit          = newScript("topic_inherit", "jobs", "owners")
	scriptTopicSweep            = newScript("topic_sweep", "jobs", "owners")
	scriptSubscriberPut         = newScript("subscriber_put", "jobs", "lanes", "batches", "owners")
	scriptSubscriberUnsubscribe = newScript("subscriber_unsubscribe", "jobs", "lanes", "batches")
	scriptSubscriberDelete      = newScript("subscriber_delete", "jobs", "lanes", "batches", "subscribers")
	scriptTokenPut              = newScript("token_put")
	scriptTokenAdd              = newScript("token_add")
	scriptTokenDelete           = newScript("token_delete", "jobs", "lanes", "batches", "subscribers", "idempotency")
	scriptIdempotencyDrop       = newScript("idempotency_drop", "jobs", "idempotency")
	scriptTokenRotate           = newScript("token_rotate", "jobs", "lanes", "batches")
	scriptTokenRotated          = newScript("token_rotated")
	scriptTokenRelabel          = newScript("token_relabel", "jobs")
	scriptBatchDrop             = newScript("batch_drop", "jobs", "lanes", "batches", "originals")
)

// Script composes a script of the keys, libraries of lua/lib, by their names, and an entry, a Lua
// text, that calls them. The libraries "jobs" and "lanes" are the queue's.
func Script(entry string, libraries ...string) *rdb.Script {
	texts := []string{queue.KeysLibrary, readLua("lib/keys")}
	for _, library := range libraries {
		switch library {
		case "jobs":
			texts = append(texts, queue.JobsLibrary)
		case "lanes":
			texts = append(texts, queue.LanesLibrary)
		default:
			texts = append(texts, readLua("lib/"+library))
		}
	}
	return rdb.NewScript(append(texts, entry)...)
}

// newScript is [Script] for an entry of this package, by its name.
func newScript(name string, libraries ...string) *rdb.Script {
	return Script(readLua(name), libraries...)
}

// batchesLibrary is what batches add to the queue's scripts: see [Store.Batches].
var batchesLibrary = readLua("lib/keys") + readLua("lib/batches") + readLua("lib/originals") + readLua("lib/deliveries")

func readLua(name string) string { return rdb.ReadLua(luaFiles, name) }
