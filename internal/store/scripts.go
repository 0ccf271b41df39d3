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

// Script composes an entry of another package, a Lua text, and libraries of this one that it calls,
// by their names in lua/lib; keys is one of all.
func Script(entry string, libraries ...string) *rdb.Script { return compose(libraries, entry) }

// newScript composes a script of an entry and the libraries that it calls; keys is one of all.
func newScript(name string, libraries ...string) *rdb.Script {
	return compose(libraries, readLua(name))
}

// compose puts the keys, libraries and an entry together. The libraries "jobs" and "lanes" are the
// queue's.
func compose(libraries []string, entry string) *rdb.Script {
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

// batchesLibrary is what batches add to the queue's scripts: see [Store.Batches].
var batchesLibrary = readLua("lib/keys") + readLua("lib/batches") + readLua("lib/originals") + readLua("lib/deliveries")

func readLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is not in this package: a programming error
	}
	return string(text)
}
