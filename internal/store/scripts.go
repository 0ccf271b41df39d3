package store

import (
	"context"
	"embed"
	"slices"

	"routemaster/internal/fence"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptTopicPublish          = newScript("topic_publish")
	scriptTopicInherit          = newScript("topic_inherit")
	scriptTopicSweep            = newScript("topic_sweep")
	scriptIdempotencyDrop       = newScript("idempotency_drop")
	scriptTokenRotated          = newUnfenced("token_rotated")
	scriptTokenRelabel          = newScript("token_relabel")
	scriptBatchDrop             = newScript("batch_drop")
	scriptTopicDelete           = newFenced("topic_delete")
	scriptSubscriberPut         = newFenced("subscriber_put")
	scriptSubscriberPatch       = newFenced("subscriber_patch")
	scriptSubscriberPause       = newFenced("subscriber_pause")
	scriptSubscriberResume      = newFenced("subscriber_resume")
	scriptSubscriberUnsubscribe = newFenced("subscriber_unsubscribe")
	scriptSubscriberDelete      = newFenced("subscriber_delete")
	scriptTokenPut              = newFenced("token_put")
	scriptTokenAdd              = newFenced("token_add")
	scriptTokenDelete           = newFenced("token_delete")
	scriptTokenRotate           = newFenced("token_rotate")
)

// Library is the Lua library of the bus's data, with the queue's.
var Library = slices.Concat(queue.Library, library)

// library is what batches add to the queue's scripts, and more: see [Store.Batches].
var library = append(slices.Clone(fence.Library), lua(
	"lib/keys", "lib/held", "lib/batches", "lib/replays", "lib/plans", "lib/generations", "lib/queued", "lib/originals", "lib/letters",
	"lib/gaps", "lib/options", "lib/setbacks", "lib/slices", "lib/deliveries", "lib/idempotency", "lib/histories",
	"lib/append", "lib/outboxes", "lib/publishes", "lib/owners", "lib/subscribers", "lib/subscriptions",
	"lib/bounds", "lib/endings", "lib/ends",
))

// Outboxes is the part of [Library] that is about outboxes.
var Outboxes = lua("lib/outboxes")

func lua(names ...string) string           { return rdb.ReadLua(luaFiles, names...) }
func newScript(name string) *rdb.Script    { return rdb.NewScript(Library, lua(name)) }
func newFenced(name string) fence.Script   { return fence.New(Library, lua(name)) }
func newUnfenced(name string) fence.Script { return fence.Unfenced(Library, lua(name)) }

// Fenced runs a script that changes something for a client: [Store.Change] also says why not.
func (s *Store) Fenced(ctx context.Context, script fence.Script, args ...any) rdb.Change {
	return script.Change(ctx, s.redis, s.mark, args...)
}
