package doctor

import (
	"context"
	"embed"
	"slices"
	"strings"

	"routemaster/internal/account"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// scriptConfirm confirms a candidate. The script's header documents arguments and result.
var scriptConfirm = rdb.NewScript(slices.Concat(store.Library, account.Library), rdb.ReadLua(luaFiles, "confirm"))

// Command is a command of Redis, or of lua/confirm.lua, with its keys in full.
type Command []any

// Check is a command and the reply it must, or must not, have; "" stands for a missing value.
type Check struct {
	is      string
	value   any
	command Command
}

// Is checks that the reply to a command is a value.
func Is(value any, command ...any) Check { return Check{"is", value, command} }

// Not checks that it is not.
func Not(value any, command ...any) Check { return Check{"not", value, command} }

// candidate is something that does not fit. It is a finding if all its checks hold at one moment,
// and then its commands repair it. Without a remedy it is skipped.
type candidate struct {
	key, problem, remedy string
	checks               []Check
	repair               []Command
}

// Add adds a candidate: a key, in full, the problem, and the repair in words and as commands.
func (e *Examination) Add(key, problem, remedy string, checks []Check, repair ...Command) {
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

// Confirm runs the candidates' checks in Redis, each with its repair in one atomic step. It reports
// the confirmed ones, and returns whether all were confirmed.
func (e *Examination) Confirm(ctx context.Context) (all bool, err error) {
	candidates := e.candidates
	e.candidates = nil
	if len(candidates) == 0 {
		return true, nil
	}
	if err := e.Settle(ctx); err != nil {
		return false, err
	}
	all = true
	slices.SortStableFunc(candidates, func(a, b candidate) int { return strings.Compare(a.key, b.key) })
	for some := range slices.Chunk(candidates, scriptsPerTrip) {
		calls := make([]rdb.Call, len(some))
		for i, c := range some {
			calls[i] = c.call(e.Fix)
		}
		for i, result := range e.Redis.RunAll(ctx, calls...) {
			holds, err := result.Int()
			c := some[i]
			all = all && err == nil && holds == 1
			switch {
			case err == nil && holds == 1:
				e.Report(c.key, c.remedy, "%s", c.problem)
			case err != nil && rdb.Answered(err): // a key that the repair meets is of another type
				e.Report(c.key, "", "%s; it cannot be repaired: %v", c.problem, err)
			case err != nil:
				return false, err
			}
		}
	}
	return all, nil
}
