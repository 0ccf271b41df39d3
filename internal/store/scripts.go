package store

import (
	"embed"
	"slices"

	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptTopicPublish          = newScript("topic_publish")
	scriptTopicInherit          = newScript("topic_inherit")
	scriptTopicSweep            = newScript("topic_sweep")
	scriptIdempotencyDrop       = newScript("idempotency_drop")
	scriptTokenRotated          = newScript("token_rotated")
	scriptTokenRelabel          = newScript("token_relabel")
	scriptBatchDrop             = newScript("batch_drop")
	scriptTopicDelete           = newScript("topic_delete")
	scriptSubscriberPut         = newScript("subscriber_put")
	scriptSubscriberPatch       = newScript("subscriber_patch")
	scriptSubscriberPause       = newScript("subscriber_pause")
	scriptSubscriberResume      = newScript("subscriber_resume")
	scriptSubscriberUnsubscribe = newScript("subscriber_unsubscribe")
	scriptSubscriberDelete      = newScript("subscriber_delete")
	scriptTokenPut              = newScript("token_put")
	scriptTokenAdd              = newScript("token_add")
	scriptTokenDelete           = newScript("token_delete")
	scriptTokenRotate           = newScript("token_rotate")
)

// Library is the Lua library of the bus's data, with the queue's.
var Library = slices.Concat(queue.Library, library)

// library is the functions that batches add to the queue's scripts, and more: see [Store.Batches].
var library = rdb.Library{lua(
	"lib/keys", "lib/batches", "lib/replays", "lib/options_version", "lib/subscriber_lanes", "lib/queued", "lib/originals", "lib/letters",
	"lib/gaps", "lib/options", "lib/setbacks", "lib/slices", "lib/deliveries", "lib/idempotency", "lib/histories",
	"lib/append", "lib/relay_keys", "lib/outboxes", "lib/publishes", "lib/owners", "lib/subscribers", "lib/subscriptions",
	"lib/bounds", "lib/endings", "lib/ends",
)}

// Outboxes is the part of [Library] that is about outboxes.
var Outboxes = lua("lib/relay_keys", "lib/outboxes")

func lua(names ...string) string        { return rdb.ReadLua(luaFiles, names...) }
func newScript(name string) *rdb.Script { return rdb.NewScript(Library, lua(name)) }
