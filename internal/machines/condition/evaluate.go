package condition

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"routemaster/internal/bus"
)

// span is a part of a source: Length bytes at the position.
type span struct {
	Position
	Length int
}

func (s span) where() span { return s }

// in is the span's text.
func (s span) in(source string) string { return source[s.Offset : s.Offset+s.Length] }

// node is a part of a condition that has a value.
type node interface {
	where() span
	eval(e *evaluation) (any, error)
}

type (
	// junction joins two or more operands by "and" or "or".
	junction struct {
		span
		word     string
		operands []node
	}
	negation struct {
		span
		operand node
	}
	comparison struct {
		span
		operator    string
		left, right node
	}
	// phrase is "left is defined", "left is in right" or "left has passed since right", by its word.
	phrase struct {
		span
		word        string
		negated     bool
		left, right node
	}
	literal struct {
		span
		value any
	}
	pathNode struct {
		span
		path Path
	}
)

// evaluation is one of a condition.
type evaluation struct {
	source string
	env    *Environment
}

func (e *evaluation) fail(at node, format string, args ...any) error {
	s := at.where()
	return &EvaluationError{Position: s.Position, Length: s.Length, Source: e.source, Reason: fmt.Sprintf(format, args...)}
}

// test reports whether a node's value counts as true.
func (e *evaluation) test(n node) (bool, error) {
	v, err := n.eval(e)
	return err == nil && Truth(v), err
}

// both evaluates two nodes.
func (e *evaluation) both(left, right node) (x, y any, err error) {
	if x, err = left.eval(e); err != nil {
		return nil, nil, err
	}
	y, err = right.eval(e)
	return x, y, err
}

func (n literal) eval(*evaluation) (any, error) { return n.value, nil }

func (n pathNode) eval(e *evaluation) (any, error) { return n.path.Lookup(e.env) }

func (n junction) eval(e *evaluation) (any, error) {
	decisive := n.word == "or"
	for _, operand := range n.operands {
		if holds, err := e.test(operand); err != nil {
			return nil, err
		} else if holds == decisive {
			return decisive, nil
		}
	}
	return !decisive, nil
}

func (n negation) eval(e *evaluation) (any, error) {
	holds, err := e.test(n.operand)
	if err != nil {
		return nil, err
	}
	return !holds, nil
}

func (n comparison) eval(e *evaluation) (any, error) {
	x, y, err := e.both(n.left, n.right)
	if err != nil {
		return nil, err
	}
	switch n.operator {
	case "=":
		return Equal(x, y), nil
	case "/=":
		return !Equal(x, y), nil
	}
	sign, ok := Order(x, y)
	if !ok {
		return nil, e.noOrder(n, x, y)
	}
	switch n.operator {
	case "<":
		return sign < 0, nil
	case "<=":
		return sign <= 0, nil
	case ">":
		return sign > 0, nil
	default:
		return sign >= 0, nil
	}
}

// noOrder is the failure of a comparison of two values that have none. Mostly, a path leads to
// nothing.
func (e *evaluation) noOrder(n comparison, x, y any) error {
	operand, v := n.left, x
	if v != nil {
		operand, v = n.right, y
	}
	if path, isPath := operand.(pathNode); isPath && v == nil {
		text := cut(path.path.String(), maxSpan)
		return e.fail(n, `%s is null, which %s cannot compare; write "%s is defined and" before it`, text, n.operator, text)
	}
	return e.fail(n, "there is no order between %s and %s", Kind(x), Kind(y))
}

func (n phrase) eval(e *evaluation) (any, error) {
	var holds bool
	var err error
	switch n.word {
	case "defined":
		var v any
		v, err = n.left.eval(e)
		holds = v != nil
	case "in":
		holds, err = n.member(e)
	default:
		holds, err = n.passed(e)
	}
	if err != nil {
		return nil, err
	}
	return holds != n.negated, nil
}

func (n phrase) member(e *evaluation) (bool, error) {
	v, container, err := e.both(n.left, n.right)
	if err != nil {
		return false, err
	}
	found, ok := Contains(v, container)
	if !ok {
		return false, e.fail(n, "%s cannot be in %s", Kind(v), Kind(container))
	}
	return found, nil
}

func (n phrase) passed(e *evaluation) (bool, error) {
	seconds, since, err := e.both(n.left, n.right)
	if err != nil {
		return false, err
	}
	if Kind(seconds) != Number {
		return false, e.fail(n.left, "%s is not a duration", Kind(seconds))
	}
	if text, ok := since.(string); ok {
		t, ok := bus.ParseTime(text)
		if !ok {
			return false, e.fail(n.right, "%q is not a timestamp in the format of RFC 3339, such as 2026-11-23T18:30:00Z",
				cut(text, maxSpan))
		}
		since = t
	}
	t, ok := since.(time.Time)
	if !ok {
		return false, e.fail(n.right, "%s is not a timestamp", Kind(since))
	}
	nanoseconds := strconv.FormatInt(int64(e.env.Now.Sub(t)), 10)
	sign, ok := Order(json.Number(nanoseconds+"e-9"), seconds)
	return ok && sign >= 0, nil
}
