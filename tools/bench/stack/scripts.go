package stack

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// slowScript is how long a script takes at least that [Stack.LongestScript] counts.
const slowScript = time.Millisecond

// maxSlow is how many commands Redis keeps in its slow log.
const maxSlow = 100_000

// WatchScripts has Redis note from now on which commands are slow.
func (s *Stack) WatchScripts(ctx context.Context) error {
	for name, value := range map[string]int64{
		"slowlog-max-len": maxSlow, "slowlog-log-slower-than": slowScript.Microseconds(),
	} {
		if err := s.nodes[0].ConfigSet(ctx, name, strconv.FormatInt(value, 10)).Err(); err != nil {
			return fmt.Errorf("redis CONFIG SET %s: %w", name, err)
		}
	}
	return s.nodes[0].SlowLogReset(ctx).Err()
}

// LongestScript returns how long the longest script took since [Stack.WatchScripts], and how many
// took a ms or more. It considers scripts whose arguments, after the namespace, begin with args. It
// returns 0 if none took that long.
func (s *Stack) LongestScript(ctx context.Context, args ...string) (longest time.Duration, slow int, err error) {
	return s.longest(ctx, func(command []string) bool { return isScript(command, args) })
}

// LongestCommand is [Stack.LongestScript] of all commands.
func (s *Stack) LongestCommand(ctx context.Context) (longest time.Duration, slow int, err error) {
	return s.longest(ctx, func([]string) bool { return true })
}

func (s *Stack) longest(ctx context.Context, counts func(command []string) bool) (longest time.Duration, slow int, err error) {
	log, err := s.nodes[0].SlowLogGet(ctx, maxSlow).Result()
	if err != nil {
		return 0, 0, fmt.Errorf("redis SLOWLOG GET: %w", err)
	}
	for _, command := range log {
		if counts(command.Args) {
			longest = max(longest, command.Duration)
			slow++
		}
	}
	return longest, slow, nil
}

// isScript reports whether a command of the slow log runs a script whose arguments begin with args.
func isScript(command, args []string) bool {
	const before = 4 // EVALSHA, the script's digest, 0 keys, the namespace
	return len(command) >= before+len(args) && strings.EqualFold(command[0], "evalsha") &&
		slices.Equal(command[before:before+len(args)], args)
}

// BeginWalk has the next worker walk over labels as if a trigger were due now: it writes the walk's
// progress into the Redis of the bus. No client can, and an interval is due on whole minutes at the
// earliest, which would be waited for.
func (s *Stack) BeginWalk(ctx context.Context, walk string) error {
	now := time.Now().UnixMilli()
	return s.partitions[0].HSet(ctx, "machines:walks", walk, fmt.Sprintf(`{"at":%d,"due":%d}`, now-1, now)).Err()
}
