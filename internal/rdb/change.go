package rdb

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Change is the result of a script that changes data for a client. Such a script returns a table:
// first 1 if it made the change, which replicas must confirm, or 0 if it changed nothing; then its
// results.
type Change struct {
	// Err is set if the script failed, or too few replicas confirmed its change.
	Err error
	// Changed is whether the script made the change.
	Changed bool
	// Results are the script's further results.
	Results []any
}

// Text is one of the results, counted from 0, if it is there and a string.
func (c *Change) Text(i int) string {
	if i >= len(c.Results) {
		return ""
	}
	text, _ := c.Results[i].(string)
	return text
}

// Int is one of the results, counted from 0, if it is there and a number.
func (c *Change) Int(i int) int {
	if i >= len(c.Results) {
		return 0
	}
	n, _ := c.Results[i].(int64)
	return int(n)
}

// Refusal returns nil if the script made the change, and the reason otherwise: the script's error,
// or the error that words has for the first result.
func (c *Change) Refusal(what string, words map[string]error) error {
	if c.Err != nil {
		return Wrap(what, c.Err)
	}
	if c.Changed {
		return nil
	}
	if refusal, ok := words[c.Text(0)]; ok {
		return refusal
	}
	return fmt.Errorf("%s: unexpected reply of a script: %v", what, c.Results)
}

// Change is [Partition.ChangeAll] for one script.
func (p *Partition) Change(ctx context.Context, script *Script, args ...any) Change {
	return p.ChangeAll(ctx, script.Call(args...))[0]
}

// ChangeAll is [Partition.RunAll] for scripts that change something for a client. They wait, in the
// same round trip, until [Options].MinReplicas replicas have confirmed it. Without their
// confirmation a script that changed something fails, though the change was made.
func (p *Partition) ChangeAll(ctx context.Context, calls ...Call) []Change {
	cmds, unconfirmed := p.run(ctx, calls, true)
	changes := make([]Change, len(calls))
	for i, cmd := range cmds {
		changes[i] = readChange(cmd, unconfirmed)
	}
	return changes
}

// readChange reads a script's reply. Unconfirmed is the error if replicas have not confirmed the
// change.
func readChange(cmd *redis.Cmd, unconfirmed error) Change {
	reply, err := cmd.Slice()
	if err != nil {
		return Change{Err: err}
	}
	if len(reply) == 0 || reply[0] != int64(0) && reply[0] != int64(1) {
		return Change{Err: fmt.Errorf("a script does not say whether it changed anything: %v", reply)}
	}
	if reply[0] == int64(0) {
		return Change{Results: reply[1:]}
	}
	if unconfirmed != nil {
		return Change{Err: unconfirmed}
	}
	return Change{Changed: true, Results: reply[1:]}
}

// Text returns the string of a reply, empty for a nil reply.
func Text(reply any) string {
	s, _ := reply.(string)
	return s
}

// Integer parses a stored integer. It returns the fallback if the text is empty or no integer.
func Integer(text string, fallback int64) int64 {
	if text == "" { // it is often not there, and an error takes memory
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fallback
	}
	return n
}
