package state_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/state"
)

// reply is an error that Redis answers with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestClassify(t *testing.T) {
	for err, want := range map[error]state.Class{
		nil: state.Answered, redis.Nil: state.Answered, reply("WRONGTYPE x"): state.Answered, reply("ERR TASK 12"): state.Answered,
		reply("MOVED 42 a:1"): state.Moved, reply("ASK 42 a:1"): state.Unavailable, reply("CLOSED the partition"): state.Unavailable,
		reply("READONLY You"): state.Refused, reply("ERR Error running script: OOM command"): state.Refused,
		state.ErrUnconfirmed: state.Refused, reply("CLUSTERDOWN x"): state.Unavailable, reply("TRYAGAIN x"): state.Unavailable,
		context.Canceled: state.Abandoned, redis.ErrClosed: state.Abandoned, errors.New("EOF"): state.Unavailable,
	} {
		assert.Equal(t, want, state.Classify(err), err)
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
		assert.Equal(t, c.want, state.Worst(cmds, c.first), c.errs)
	}
}
