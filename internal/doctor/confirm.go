package doctor

import (
	"context"
	"embed"
	"slices"
	"strings"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptConfirm = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "confirm"))
	scriptMoment  = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "moment"))
)

// command is a command of Redis, or of lua/confirm.lua, with its keys in full.
type command []any

// check is a command, and what its reply is, or is not: "" stands for nothing.
type check struct {
	is    string
	value any
	command
}

func is(value any, command ...any) check  { return check{"is", value, command} }
func not(value any, command ...any) check { return check{"not", value, command} }

// candidate is something that does not fit. It is a finding if all its checks hold at one moment,
// and then its commands repair it. Without a remedy it is skipped.
type candidate struct {
	key, problem, remedy string
	checks               []check
	repair               []command
}

func (e *examination) add(key, problem, remedy string, checks []check, repair ...command) {
	e.candidates = append(e.candidates, candidate{key, problem, remedy, checks, repair})
}

// call runs the script that confirms the candidate.
func (c candidate) call(fix bool) rdb.Call {
	args := []any{fix && c.remedy != "", len(c.checks)}
	for _, check := range c.checks {
		args = append(args, check.is, check.value, len(check.command))
		args = append(args, check.command...)
	}
	for _, command := range c.repair {
		args = append(args, len(command))
		args = append(args, command...)
	}
	return scriptConfirm.Call(args...)
}

const scriptsPerTrip = 50 // so many short ones

// confirm has Redis check the candidates, each in one step, and repair what is confirmed in the
// same step. It reports that, and returns how many it was.
func (e *examination) confirm(ctx context.Context) (confirmed int, err error) {
	candidates := e.candidates
	e.candidates = nil
	if len(candidates) == 0 {
		return 0, nil
	}
	if err := e.pause(ctx); err != nil {
		return 0, err
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return strings.Compare(a.key, b.key) })
	for some := range slices.Chunk(candidates, scriptsPerTrip) {
		calls := make([]rdb.Call, len(some))
		for i, c := range some {
			calls[i] = c.call(e.fix)
		}
		for i, result := range e.Redis.RunAll(ctx, calls...) {
			holds, err := result.Int()
			switch c := some[i]; {
			case err == nil && holds == 1:
				confirmed++
				e.report(c.key, c.remedy, "%s", c.problem)
			case err != nil && rdb.Answered(err): // a key that the repair meets is of another type
				e.report(c.key, "", "%s; it cannot be repaired: %v", c.problem, err)
			case err != nil:
				return confirmed, err
			}
		}
	}
	return confirmed, nil
}
