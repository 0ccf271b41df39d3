package rdb

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
)

// reply is an error that Redis answers with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestClassify(t *testing.T) {
	for err, want := range map[error]class{
		nil: answered, redis.Nil: answered, reply("WRONGTYPE x"): answered, reply("ERR TASK 12"): refused,
		reply("MOVED 42 a:1"): moved, reply("ASK 42 a:1"): held, reply("CLOSED the partition"): held,
		reply("READONLY You"): refused, reply("ERR Error running script: OOM command"): refused,
		ErrUnconfirmed: refused, reply("CLUSTERDOWN x"): unavailable, reply("TRYAGAIN x"): held,
		context.Canceled: abandoned, redis.ErrClosed: abandoned, errors.New("EOF"): unavailable,
	} {
		assert.Equal(t, want, classify(err), err)
	}
}

// TestUnknownRepliesAreRefusals has replies of Redis, its providers and proxies without a known
// code. All are refusals, unless the call itself or its key is the cause.
func TestUnknownRepliesAreRefusals(t *testing.T) {
	for _, text := range []string{
		"ERR DB index is out of range", "ERR max requests limit exceeded. Limit: 500000, Usage: 500000.",
		"ERR max daily request limit exceeded", "ERR unknown command 'EVALSHA'", "ERR unknown command `evalsha`",
		"ERR Unknown Redis command called from script script: 1f, on @user_script:1.",
		"ERR Error running script (call to f_1f): @user_script: 7: Unknown Redis command called from Lua script",
		"ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:9.",
		"ERR upstream failure", "upstream failure", "no upstream host", "ERR command is not allowed", "THROTTLED slow down",
		"ERR Redis is configured to use a different number of slots", "NOGOODSLAVE x", "MISCONF Errors writing to the AOF file",
	} {
		assert.Equal(t, refused, classify(reply(text)), text)
		assert.NotEmpty(t, Refusal(reply(text)), text)
	}
	for _, text := range []string{
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:12.",
		"ERR user_script:1: attempt to compare nil with number script: 1f, on @user_script:1.",
		"ERR Error running script (call to f_1f): @user_script:1: user_script:1: attempt to index a nil value",
		"ERR value is not an integer or out of range", "ERR hash value is not an integer", "ERR value is not a valid float",
		"ERR syntax error", "ERR wrong number of arguments for 'get' command", "NOSCRIPT No matching script. Please use EVAL.",
		"ERR no such key", "CROSSSLOT Keys in request don't hash to the same slot", "ERR increment or decrement would overflow",
	} {
		assert.Equal(t, answered, classify(reply(text)), text)
		assert.Empty(t, Refusal(reply(text)), text)
	}
}

func TestTheWorstOfAPipeline(t *testing.T) {
	missing, wrong, asked, aborted := redis.Nil, reply("WRONGTYPE x"), reply("ASK 42 a:1"), reply("EXECABORT x")
	for _, c := range []struct {
		errs        []error
		first, want error
	}{
		{[]error{nil, nil}, nil, nil},
		{[]error{nil, missing}, missing, missing},
		{[]error{missing, wrong}, missing, missing},
		{[]error{missing, wrong, asked}, missing, asked},
		{[]error{wrong, nil, asked}, wrong, asked},
		{[]error{asked, reply("OOM x")}, asked, asked},
		{[]error{aborted, asked, aborted}, aborted, asked},
		{[]error{aborted, wrong}, aborted, aborted},
	} {
		var cmds []redis.Cmder
		for _, err := range c.errs {
			cmd := redis.NewCmd(t.Context())
			cmd.SetErr(err)
			cmds = append(cmds, cmd)
		}
		assert.Equal(t, c.want, worst(cmds, c.first), c.errs)
	}
}
