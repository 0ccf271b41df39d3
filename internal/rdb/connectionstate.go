package rdb

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// connectionState observes the result of every command, and logs when Redis becomes unavailable and
// when it is available again, and likewise whether the partition is held. It is a [redis.Hook] of
// every connection.
type connectionState struct {
	log        *slog.Logger
	down, held atomic.Bool
	// In ms since the Unix epoch.
	lastRefusal, backAt atomic.Int64
	lastUnavailable     atomic.Pointer[time.Time]
}

// newConnectionState takes Redis to be there from now on.
func newConnectionState(log *slog.Logger) *connectionState {
	s := &connectionState{log: log}
	s.noteUnavailable()
	return s
}

func (s *connectionState) noteUnavailable() {
	now := time.Now()
	s.lastUnavailable.Store(&now)
}

// SteadySince is since when no call has found Redis unavailable or the partition held, by the
// host's clock as it is set now: it may have been wrong then.
func (s *connectionState) SteadySince() time.Time {
	now := time.Now()
	return now.Add(-now.Sub(*s.lastUnavailable.Load()))
}

// refusalPause is how long Redis must not have refused anything for a refusal to be logged again.
const refusalPause = time.Minute

// quietTime is how long after Redis' return failures are not logged, because the library goes on to
// return errors that it remembers.
const quietTime = 2 * time.Second

// Observe takes note of the result of a call.
func (s *connectionState) Observe(err error) {
	now := time.Now().UnixMilli()
	switch classify(err) {
	case answered:
		s.noteAvailable(now)
	case held:
		s.noteUnavailable()
		s.noteAvailable(now)
		if s.held.CompareAndSwap(false, true) {
			s.log.Error("partition held or moving, retrying", "error", err)
		}
	case unavailable:
		s.noteUnavailable()
		if now-s.backAt.Load() > quietTime.Milliseconds() && s.down.CompareAndSwap(false, true) {
			s.log.Error("redis unavailable, retrying", "error", err)
		}
	case refused:
		if last := s.lastRefusal.Swap(now); now-last > refusalPause.Milliseconds() {
			s.log.Error("redis refuses calls", "error", err)
		}
	case abandoned, moved:
	}
}

// noteAvailable notes that Redis answers, at a time in ms since the Unix epoch.
func (s *connectionState) noteAvailable(now int64) {
	if s.down.CompareAndSwap(true, false) {
		s.backAt.Store(now)
		s.log.Info("redis available again")
	}
}

// observeScripts notes that the partition is held no more if a script has run. No other command
// says so: reads are answered while a partition is held. EVAL is sent without the guard.
func (s *connectionState) observeScripts(cmds ...redis.Cmder) {
	hasRun := func(cmd redis.Cmder) bool {
		return cmd.Name() == "evalsha" && classify(cmd.Err()) == answered && !HasCode(cmd.Err(), "NOSCRIPT")
	}
	if s.held.Load() && slices.ContainsFunc(cmds, hasRun) && s.held.CompareAndSwap(true, false) {
		s.log.Info("partition open again")
	}
}

// observeCall is Observe, but ignores the failure of a call that ran out of its own time.
func (s *connectionState) observeCall(ctx context.Context, err error) {
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
		return
	}
	s.Observe(err)
}

var errUnknownMaster = errors.New("the sentinels that answer know no master of that name")

// DialHook is part of [redis.Hook]. Sentinels that do not know the master answer nil, which must
// not be taken for the answer of a call.
func (s *connectionState) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if errors.Is(err, redis.Nil) {
			err = errUnknownMaster
		}
		return conn, err
	}
}

// ProcessHook is part of [redis.Hook].
func (s *connectionState) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := withoutArguments(next(ctx, cmd))
		cmd.SetErr(withoutArguments(cmd.Err()))
		if !isOptional(cmd, err) {
			s.observeCall(ctx, err)
		}
		s.observeScripts(cmd)
		return err
	}
}

// optional commands are not in all that is called Redis, or not for every user. The bus does
// without them.
var optional = []string{"hello", "client", "info", "config", "cluster"}

// isOptional reports whether a command failed with an error because this Redis lacks it, or its
// user may not run it.
func isOptional(cmd redis.Cmder, err error) bool {
	return err != nil && cmd.Err() == err && slices.Contains(optional, cmd.Name()) && (isUnknownCommand(err) || HasCode(err, "NOPERM"))
}

// replyError is a reply of Redis without the arguments of the command.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError makes it a [redis.Error].
func (replyError) RedisError() {}

// withoutArguments returns the error of a command that Redis does not know without the command's
// arguments, which may be tokens. It returns all other errors as they are.
func withoutArguments(err error) error {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		if short, _, found := strings.Cut(reply.Error(), ", with args beginning with"); found {
			return replyError(short)
		}
	}
	return err
}

// complete sets the errors of a failed pipeline's commands. If Redis refuses a command that sets up
// the connection, such as SELECT, the library sets none: every command would look successful.
func complete(cmds []redis.Cmder, first error) {
	sent := slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil })
	for _, cmd := range cmds {
		if sent {
			cmd.SetErr(withoutArguments(cmd.Err()))
		} else {
			cmd.SetErr(first)
		}
	}
}

// ProcessPipelineHook is part of [redis.Hook]. The library returns the first error, and a missing
// key is an error to it; a caller that looks only at that one must learn of a later refused
// command.
func (s *connectionState) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		first := withoutArguments(next(ctx, cmds))
		if first != nil {
			complete(cmds, first)
		}
		err := worst(cmds, first)
		if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return isOptional(cmd, err) }) {
			s.observeCall(ctx, err)
		}
		s.observeScripts(cmds...)
		return err
	}
}
