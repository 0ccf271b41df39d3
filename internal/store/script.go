package store

import (
	"context"
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptTopicPublish          = newScript("topic_publish", "batches")
	scriptTopicDelete           = newScript("topic_delete")
	scriptSubscriberPut         = newScript("subscriber_put", "batches")
	scriptSubscriberUnsubscribe = newScript("subscriber_unsubscribe")
	scriptSubscriberDelete      = newScript("subscriber_delete", "full", "batches", "subscribers")
	scriptTokenDelete           = newScript("token_delete", "full", "batches", "subscribers")
	scriptJobEnqueue            = newScript("job_enqueue", "full")
	scriptJobSchedule           = newScript("job_schedule", "full")
	scriptJobAcquire            = newScript("job_acquire", "full", "batches")
	scriptJobAck                = newScript("job_ack", "full", "batches")
	scriptJobNack               = newScript("job_nack", "full", "batches")
	scriptWorkerScrub           = newScript("worker_scrub", "full")
	scriptWorkerHeartbeat       = newScript("worker_heartbeat", "full")
)

// newScript reads a script and the libraries it is to begin with; keys is one for all.
func newScript(name string, libraries ...string) *redis.Script {
	var source strings.Builder
	for _, library := range append([]string{"keys"}, libraries...) {
		source.WriteString(readLua("lib/" + library))
	}
	source.WriteString(readLua(name))
	return redis.NewScript(source.String())
}

func readLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is not in this package: a programming error
	}
	return string(text)
}

// call is one run of a script. The namespace goes before args.
type call struct {
	script *redis.Script
	args   []any
}

// run runs one script in one round trip.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) *redis.Cmd {
	return s.runAll(ctx, call{script, args})[0]
}

// runAll runs scripts, in order, in one round trip. When Redis does not know one (it was restarted,
// failed over, or told to forget its scripts), that one and those after it run again:
// they must bear being run twice.
func (s *Store) runAll(ctx context.Context, calls ...call) []*redis.Cmd {
	cmds := s.evalsha(ctx, calls)
	for i, cmd := range cmds {
		if !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			continue
		}
		for _, c := range calls[i:] {
			if err := c.script.Load(ctx, s.redis).Err(); err != nil {
				cmd.SetErr(err)
				return cmds
			}
		}
		copy(cmds[i:], s.evalsha(ctx, calls[i:]))
		break
	}
	return cmds
}

func (s *Store) evalsha(ctx context.Context, calls []call) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(calls))
	// The pipeline's error is the first of its commands', each of which keeps its own.
	_, _ = s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range calls {
			args := append([]any{s.keys.ns}, c.args...)
			cmds[i] = pipe.EvalSha(ctx, c.script.Hash(), nil, args...)
		}
		return nil
	})
	return cmds
}
