package store

import (
	"embed"
	"fmt"

	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptTopicPublish          = newScript("topic_publish", "batches", "idempotency", "owners")
	scriptTopicDelete           = newScript("topic_delete", "owners")
	scriptTopicInherit          = newScript("topic_inherit", "full", "owners")
	scriptTopicSweep            = newScript("topic_sweep", "full", "owners")
	scriptSubscriberPut         = newScript("subscriber_put", "batches", "owners")
	scriptSubscriberUnsubscribe = newScript("subscriber_unsubscribe", "batches")
	scriptSubscriberDelete      = newScript("subscriber_delete", "full", "batches", "subscribers")
	scriptTokenPut              = newScript("token_put")
	scriptTokenAdd              = newScript("token_add")
	scriptTokenDelete           = newScript("token_delete", "full", "batches", "subscribers", "idempotency")
	scriptIdempotencyDrop       = newScript("idempotency_drop", "full", "idempotency")
	scriptTokenRotate           = newScript("token_rotate", "batches")
	scriptTokenRotated          = newScript("token_rotated")
	scriptTokenRelabel          = newScript("token_relabel", "full")
	scriptJobEnqueue            = newScript("job_enqueue", "full")
	scriptJobSchedule           = newScript("job_schedule", "full")
	scriptJobAcquire            = newScript("job_acquire", "full", "batches", "originals")
	scriptJobAck                = newScript("job_ack", "full", "batches")
	scriptJobNack               = newScript("job_nack", "full", "batches")
	scriptJobAckAcquire         = newChain("job_ack", "job_acquire", "full", "batches", "originals")
	scriptJobNackAcquire        = newChain("job_nack", "job_acquire", "full", "batches", "originals")
	scriptBatchDrop             = newScript("batch_drop", "full", "batches", "originals")
	scriptWorkerScrub           = newScript("worker_scrub", "full")
	scriptWorkerHeartbeat       = newScript("worker_heartbeat", "full")

	scriptCheckWindow       = newScript("check_window")
	scriptCheckJob          = newScript("check_job", "full", "batches", "check")
	scriptCheckListed       = newScript("check_listed", "full", "batches", "check")
	scriptCheckWorker       = newScript("check_worker", "full", "check")
	scriptCheckTopic        = newScript("check_topic", "full", "check")
	scriptCheckSubscriber   = newScript("check_subscriber", "full", "batches", "subscribers", "check")
	scriptCheckSubscription = newScript("check_subscription", "full", "check")
	scriptCheckGauges       = newScript("check_gauges", "full", "batches", "check")
)

// Script composes an entry of another package, a Lua text, and libraries of this one that it calls, by
// their names in lua/lib; keys is one of all.
func Script(entry string, libraries ...string) *rdb.Script { return compose(libraries, entry) }

// newScript composes a script of an entry and the libraries that it calls; keys is one of all.
func newScript(name string, libraries ...string) *rdb.Script {
	return compose(libraries, readLua(name))
}

// newChain makes one script of two, the second of which runs after the first, whatever that has
// returned. Its arguments are the namespace, the number of arguments of the first without the
// namespace, those, and then those of the second. It returns what each of the two does; a text for
// the second is its error.
func newChain(first, second string, libraries ...string) *rdb.Script {
	return compose(libraries, fmt.Sprintf(chain, readLua(first), readLua(second)))
}

const chain = `
local function first(ARGV)
%s
end
local function second(ARGV)
%s
end
local args, split = { { ARGV[1] }, { ARGV[1] } }, tonumber(ARGV[2]) + 2
for i = 3, #ARGV do table.insert(args[i <= split and 1 or 2], ARGV[i]) end
local returned = first(args[1])
local fine, also = pcall(second, args[2])
if not fine then also = type(also) == 'table' and also.err or tostring(also) end
return { returned, also }
`

func compose(libraries []string, entry string) *rdb.Script {
	texts := []string{readLua("lib/keys")}
	for _, library := range libraries {
		texts = append(texts, readLua("lib/"+library))
	}
	return rdb.NewScript(append(texts, entry)...)
}

func readLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is not in this package: a programming error
	}
	return string(text)
}
