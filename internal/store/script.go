package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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
	scriptTokenDelete           = newScript("token_delete", "full", "batches", "subscribers", "idempotency")
	scriptIdempotencyDrop       = newScript("idempotency_drop", "full", "idempotency")
	scriptTokenRotate           = newScript("token_rotate", "batches")
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

	scriptMigrateBatch   = newScript("migrate_batch", "full", "batches", "originals", "check")
	scriptMigrateCounter = newScript("migrate_counter")
	scriptMigrateGauge   = newScript("migrate_gauge")

	scriptCheckWindow       = newScript("check_window")
	scriptCheckJob          = newScript("check_job", "full", "batches", "check")
	scriptCheckListed       = newScript("check_listed", "full", "batches", "check")
	scriptCheckWorker       = newScript("check_worker", "full", "check")
	scriptCheckTopic        = newScript("check_topic", "full", "check")
	scriptCheckSubscriber   = newScript("check_subscriber", "full", "batches", "subscribers", "check")
	scriptCheckSubscription = newScript("check_subscription", "full", "check")
	scriptCheckGauges       = newScript("check_gauges", "full", "batches", "check")
)

// newScript reads a script and the libraries it is to begin with; keys is one for all.
func newScript(name string, libraries ...string) *script {
	return makeScript(readLua(name), libraries)
}

// newChain makes one script of two, the second of which runs after the first, whatever that has returned. Its arguments are the namespace,
// the number of arguments of the first without the namespace, those, and then those of the second. It returns what each of the
// two does; a text for the second is its error.
func newChain(first, second string, libraries ...string) *script {
	return makeScript(fmt.Sprintf(chain, readLua(first), readLua(second)), libraries)
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

func makeScript(body string, libraries []string) *script {
	var source strings.Builder
	for _, library := range append([]string{"keys"}, libraries...) {
		source.WriteString(readLua("lib/" + library))
	}
	source.WriteString(body)
	return &script{redis.NewScript(source.String()), source.String()}
}

// script is a script with its text.
type script struct {
	*redis.Script
	source string
}

func readLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is not in this package: a programming error
	}
	return string(text)
}

// call is one run of a script, with the namespace before args, or, without a script, a command.
type call struct {
	script *script
	args   []any
}

// confirmWithin bounds how long the replicas may take.
const confirmWithin = time.Second

// errUnconfirmed says that a change may be lost if Redis fails over now.
var errUnconfirmed = errors.New("too few replicas have confirmed the change")

// change is changeAll for one call.
func (s *Store) change(ctx context.Context, c call) *redis.Cmd { return s.changeAll(ctx, c)[0] }

// changeAll runs what clients asked for, in order, in one round trip, and has it confirmed by the replicas. Without their
// confirmation a call fails, though the change was made. None is run twice.
func (s *Store) changeAll(ctx context.Context, calls ...call) []*redis.Cmd {
	if s.minReplicas > 0 {
		calls = append(slices.Clip(calls), call{args: []any{"wait", s.minReplicas, confirmWithin.Milliseconds()}})
	}
	cmds := s.runAll(ctx, calls...)
	if s.minReplicas == 0 {
		return cmds
	}
	last := len(cmds) - 1
	s.requireConfirmation(calls[:last], cmds[:last], cmds[last])
	return cmds[:last]
}

// requireConfirmation makes changes fail that too few replicas have confirmed.
func (s *Store) requireConfirmation(calls []call, changes []*redis.Cmd, confirmation *redis.Cmd) {
	replicas, err := confirmation.Int()
	if err == nil && replicas < s.minReplicas {
		err = errUnconfirmed
		s.link.saw(err)
	}
	if err == nil {
		return
	}
	for i, change := range changes {
		// A script that changed nothing says so by a number that is not positive.
		n, isNumber := change.Val().(int64)
		if change.Err() == nil && (n > 0 || !isNumber || calls[i].script == nil) {
			change.SetErr(err)
		}
	}
}

// run runs one script in one round trip.
func (s *Store) run(ctx context.Context, script *script, args ...any) *redis.Cmd {
	return s.runAll(ctx, call{script, args})[0]
}

// runAll runs calls, in order, in one round trip. When Redis does not know the script of one (it was restarted,
// failed over, or told to forget its scripts), that one runs later; no script runs twice.
func (s *Store) runAll(ctx context.Context, calls ...call) []*redis.Cmd {
	cmds := s.evalsha(ctx, calls)
	var missing []int
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") || missing != nil && calls[i].script == nil { // a wait is for all before it
			missing = append(missing, i)
		}
	}
	s.runAgain(ctx, calls, cmds, missing)
	return cmds
}

// runAgain loads the scripts of some calls, and runs these calls once more, all on one connection: another may lead to
// another server, while Redis fails over.
func (s *Store) runAgain(ctx context.Context, calls []call, cmds []*redis.Cmd, which []int) {
	var loads, again []call
	loaded := map[*script]bool{nil: true}
	for _, i := range which {
		if script := calls[i].script; !loaded[script] {
			loaded[script] = true
			loads = append(loads, call{args: []any{"script", "load", script.source}})
		}
		again = append(again, calls[i])
	}
	ran := s.evalsha(ctx, append(loads, again...))
	for i, cmd := range ran[len(loads):] {
		cmds[which[i]] = cmd
	}
}

func (s *Store) evalsha(ctx context.Context, calls []call) []*redis.Cmd {
	if len(calls) == 0 {
		return nil
	}
	cmds := make([]*redis.Cmd, len(calls))
	// The pipeline's error is the first of its commands', each of which keeps its own.
	_, _ = s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range calls {
			if c.script == nil {
				cmds[i] = pipe.Do(ctx, c.args...)
				continue
			}
			args := append([]any{s.keys.ns}, c.args...)
			cmds[i] = pipe.EvalSha(ctx, c.script.Hash(), nil, args...)
		}
		return nil
	})
	return cmds
}
