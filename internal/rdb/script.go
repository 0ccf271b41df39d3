package rdb

import (
	"context"
	"embed"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/rdb/compose"
)

// Script is a Lua script. Its first argument is always the namespace of the partition it runs in.
type Script struct {
	library Library
	entry   string
	sha     func() string
}

// Library is what scripts share: Lua texts that only define, in order.
type Library []string

// NewScript makes a script of its entry, a Lua text, and what that needs of a library. It is
// composed when it is first run, and when a Redis does not know it: that takes about a millisecond,
// and a process runs few of them. So a process keeps no text but the library.
func NewScript(library Library, entry string) *Script {
	s := &Script{library: library, entry: entry}
	s.sha = sync.OnceValue(func() string { return redis.NewScript(s.source()).Hash() })
	return s
}

// source is what Redis is given.
func (s *Script) source() string { return guard + compose.Script(strings.Join(s.library, ""), s.entry) }

// ReadLua reads lua/{name}.lua, of each name in turn, of a package's embedded files, for
// [NewScript]. It panics if there is no such file, which is a programming error.
func ReadLua(files embed.FS, names ...string) string {
	var texts strings.Builder
	for _, name := range names {
		text, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		texts.Write(text)
	}
	return texts.String()
}

// Call is one run of a script with these arguments, which follow the namespace.
func (s *Script) Call(args ...any) Call { return Call{s, args} }

// Call is one run of a script.
type Call struct {
	script *Script
	args   []any
}

// Result is what a script returned. Where that was nothing, its error is [Nil].
type Result struct{ cmd *redis.Cmd }

// Err is the script's error, if it failed.
func (r Result) Err() error { return r.cmd.Err() }

// Value is what the script returned: an int64, a string, or a list of such values.
func (r Result) Value() (any, error) { return r.cmd.Result() }

// Int is the number that the script returned.
func (r Result) Int() (int, error) { return r.cmd.Int() }

// List is the table that the script returned.
func (r Result) List() ([]any, error) { return r.cmd.Slice() }

// Strings is the table of strings that the script returned.
func (r Result) Strings() ([]string, error) { return r.cmd.StringSlice() }

// Change is what came of a script that changes something, whether or not replicas have confirmed
// it.
func (r Result) Change() Change { return readChange(r.cmd, nil) }

// Run runs one script in one round trip.
func (p *Partition) Run(ctx context.Context, script *Script, args ...any) Result {
	return p.RunAll(ctx, script.Call(args...))[0]
}

// RunAll runs scripts, in order, in one round trip; each is atomic by itself. When Redis does not
// know one of them, because it was restarted, failed over or had its scripts flushed, that one runs
// later. None runs twice.
func (p *Partition) RunAll(ctx context.Context, calls ...Call) []Result {
	results := make([]Result, len(calls))
	for i, cmd := range p.run(ctx, calls) {
		results[i] = Result{cmd}
	}
	return results
}

// run runs scripts, and then commands, which are for what the scripts did: after scripts that were
// missing at first, the commands run once more. It returns the results of both.
func (p *Partition) run(ctx context.Context, calls []Call, then ...command) []*redis.Cmd {
	commands := make([]command, len(calls), len(calls)+len(then))
	for i, c := range calls {
		args := append(make(command, 0, 5+len(c.args)), "evalsha", c.script.sha(), 0, p.namespace)
		if p.IsOneOfSeveral() {
			args = append(args[:2], 1, p.namespace, p.namespace)
		}
		commands[i] = append(args, c.args...)
	}
	commands = append(commands, then...)
	cmds := p.do(ctx, commands)
	var missing []int
	for i, cmd := range cmds {
		if i < len(calls) && HasCode(cmd.Err(), "NOSCRIPT") || i >= len(calls) && missing != nil {
			missing = append(missing, i)
		}
	}
	if missing == nil {
		return cmds
	}
	// All on one connection: another may lead to another server, while Redis fails over.
	var again []command
	loaded := map[*Script]bool{}
	for _, i := range missing {
		if i < len(calls) && !loaded[calls[i].script] {
			loaded[calls[i].script] = true
			again = append(again, command{"script", "load", calls[i].script.source()})
		}
	}
	loads := len(again)
	for _, i := range missing {
		again = append(again, commands[i])
	}
	for at, cmd := range p.do(ctx, again)[loads:] {
		i := missing[at]
		if i >= len(calls) && len(missing) < len(commands) {
			cmd = fewer(cmds[i], cmd) // it may have asked another server about what ran before
		}
		cmds[i] = cmd
	}
	return cmds
}

// fewer is the one of two WAITs that has failed or confirms less.
func fewer(a, b *redis.Cmd) *redis.Cmd {
	replicas, err := a.Int()
	if others, _ := b.Int(); err != nil || replicas < others {
		return a
	}
	return b
}

// command is a command with its arguments.
type command []any

func (p *Partition) do(ctx context.Context, commands []command) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(commands))
	// The pipeline's error is the first of its commands', each of which keeps its own.
	_, _ = p.db.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range commands {
			cmds[i] = pipe.Do(ctx, c...)
		}
		return nil
	})
	return cmds
}
