package rdb

import (
	"context"
	"embed"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script. Its first argument is always the namespace of the partition it runs in.
type Script struct {
	library Library
	entry   string
	sha     func() string
	// kept is the text, composed once: see [KeepScripts].
	kept func() string
}

// Library is the shared code of scripts: Lua texts that only define, in order.
type Library []string

// NewScript makes a script of its entry, a Lua text, and the definitions it needs of a library. It
// is composed when it is first run, and when a Redis does not know it: that takes about a
// millisecond, and a process runs few of them. So a process keeps no text but the library.
func NewScript(library Library, entry string) *Script {
	s := &Script{library: library, entry: entry}
	s.sha = sync.OnceValue(func() string { return redis.NewScript(s.source()).Hash() })
	s.kept = sync.OnceValue(s.compose)
	return s
}

// keepsScripts is whether the process keeps the texts of its scripts.
var keepsScripts atomic.Bool

// KeepScripts has the process compose each script once, and keep its text. It is for tests, which
// use a new Redis each: a sixth of their time would go into composing the same scripts again.
func KeepScripts() { keepsScripts.Store(true) }

// source returns the text for Redis.
func (s *Script) source() string {
	if keepsScripts.Load() {
		return s.kept()
	}
	return s.compose()
}

func (s *Script) compose() string {
	return guard + ComposeScript(strings.Join(s.library, ""), s.entry)
}

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

// Result is the reply of a script. If it is empty, its error is [Nil].
type Result struct{ cmd *redis.Cmd }

// Err is the script's error, if it failed.
func (r Result) Err() error { return r.cmd.Err() }

// Value returns the script's reply: an int64, a string, or a list of such values.
func (r Result) Value() (any, error) { return r.cmd.Result() }

// Int is the number that the script returned.
func (r Result) Int() (int, error) { return r.cmd.Int() }

// List is the table that the script returned.
func (r Result) List() ([]any, error) { return r.cmd.Slice() }

// Strings is the table of strings that the script returned.
func (r Result) Strings() ([]string, error) { return r.cmd.StringSlice() }

// Change returns the result of a script that changes data, whether or not replicas have confirmed
// it.
func (r Result) Change() Change { return readChange(r.cmd, nil) }

// Run runs one script in one round trip.
func (p *Partition) Run(ctx context.Context, script *Script, args ...any) Result {
	return p.RunAll(ctx, script.Call(args...))[0]
}

// probe is the smallest script.
var probe = NewScript(nil, "return 1")

// RequireScripts fails with [bus.ErrUnavailable] unless the partition runs scripts: a proxy, a
// provider or the rules of access may refuse just these, and all else works. One that is held runs
// none.
func (p *Partition) RequireScripts(ctx context.Context) error {
	return Wrap("run a script", p.Run(ctx, probe).Err())
}

// RefusesScripts returns how Redis refuses to run scripts, as [Refusal] says it; empty if it runs
// them, or if that cannot be said.
func (p *Partition) RefusesScripts(ctx context.Context) string {
	err := p.Run(ctx, probe).Err()
	if HasCode(err, "NOSCRIPT") { // it was just loaded, or that was refused
		return "NOSCRIPT"
	}
	return Refusal(err)
}

// RunAll runs scripts, in order, in one round trip; each is atomic by itself. When Redis does not
// know one of them, because it was restarted, failed over or had its scripts flushed, that one runs
// later. None runs twice.
func (p *Partition) RunAll(ctx context.Context, calls ...Call) []Result {
	results := make([]Result, len(calls))
	cmds, _ := p.run(ctx, calls, false)
	for i, cmd := range cmds {
		results[i] = Result{cmd}
	}
	return results
}

// run runs scripts, and has replicas confirm changes, if they must, in the same round trip. It
// returns why they are unconfirmed, nil if they are not.
func (p *Partition) run(ctx context.Context, calls []Call, areChanges bool) (cmds []*redis.Cmd, unconfirmed error) {
	var confirm []command
	if areChanges && p.HasConfirmation() {
		confirm = p.confirmation(p.client.minReplicas)
	}
	commands := make([]command, len(calls))
	for i, c := range calls {
		commands[i] = p.evaluation("evalsha", c.script.sha(), c.args...)
	}
	cmds, unconfirmed = p.send(ctx, commands, confirm)
	var missing []int
	for i, cmd := range cmds {
		if HasCode(cmd.Err(), "NOSCRIPT") {
			missing = append(missing, i)
		}
	}
	if missing == nil {
		return cmds, unconfirmed
	}
	// All on one connection: another may lead to another server, while Redis fails over.
	var again []command
	loaded := map[*Script]bool{}
	for _, i := range missing {
		if !loaded[calls[i].script] {
			loaded[calls[i].script] = true
			again = append(again, command{"script", "load", calls[i].script.source()})
		}
	}
	loads := len(again)
	for _, i := range missing {
		again = append(again, commands[i])
	}
	others, err := p.send(ctx, again, confirm)
	for at, cmd := range others[loads:] {
		cmds[missing[at]] = cmd
	}
	// It may have asked another server, which does not know of the scripts before.
	if unconfirmed == nil || len(missing) == len(calls) {
		unconfirmed = err
	}
	return cmds, unconfirmed
}

// evaluation is the command EVALSHA or EVAL, of a script's digest or text.
func (p *Partition) evaluation(name, script string, args ...any) command {
	c := append(make(command, 0, 5+len(args)), name, script, 0, p.namespace)
	if p.IsOneOfSeveral() {
		c = append(c[:2], 1, p.namespace, p.namespace)
	}
	return append(c, args...)
}

// send sends commands, and the commands that make replicas confirm them, and judges those.
func (p *Partition) send(ctx context.Context, commands, confirm []command) (cmds []*redis.Cmd, unconfirmed error) {
	cmds = p.do(ctx, append(commands, confirm...))
	if confirm != nil {
		unconfirmed = p.confirmed(cmds[len(commands):])
	}
	return cmds[:len(commands)], unconfirmed
}

// command is a command with its arguments.
type command []any

func (p *Partition) do(ctx context.Context, commands []command) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(commands))
	// The pipeline's error is its first failed command's, and each command keeps its own.
	_, _ = p.db.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range commands {
			cmds[i] = pipe.Do(ctx, c...)
		}
		return nil
	})
	return cmds
}
