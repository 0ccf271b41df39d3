package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Explanation is why a condition holds or not.
type Explanation struct {
	Condition string `json:"condition"`
	// Null if it fails, or is not known.
	Value *bool `json:"value"`
	// It depends on a feed that was not asked.
	Unknown bool `json:"unknown,omitempty"`
	// Why the evaluation fails.
	Error string `json:"error,omitempty"`
	// Each test of the condition, and each path in it.
	Parts []Part `json:"parts"`
}

// Part is a test of a condition, or a path in it, and its value now.
type Part struct {
	// As in the source, in one line.
	Text string `json:"text"`
	// A boolean, a number, a string or null.
	Value   any    `json:"value"`
	Unknown bool   `json:"unknown,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Explain evaluates the condition, and then each of its parts separately, including parts that the
// evaluation skips. Parts are listed in the order of the source: each test with the nots before it
// (a comparison, a phrase, or a value that stands alone), followed by each path in it. A
// parenthesis around operands of and or or is not a part. Parts with the same text are listed once.
func (c *Condition) Explain(env *Environment) Explanation {
	x := Explanation{Condition: c.source, Parts: make([]Part, 0, len(c.parts))}
	holds, err := c.Evaluate(env)
	if x.Unknown, x.Error = describe(err); err == nil {
		x.Value = &holds
	}
	e := &evaluation{c.source, env}
	for _, part := range c.parts {
		v, err := part.node.eval(e)
		p := Part{Text: part.text, Value: summary(v)}
		p.Unknown, p.Error = describe(err)
		x.Parts = append(x.Parts, p)
	}
	return x
}

// describe gives an error as explanations have it.
func describe(err error) (unknown bool, text string) {
	switch {
	case err == nil:
		return false, ""
	case errors.Is(err, ErrUnknown):
		return true, ""
	default:
		return false, err.Error()
	}
}

const (
	maxShown  = 200 // characters of a value
	maxListed = 10  // elements of a list or object
)

// summary is a value as a [Part] has it.
func summary(v any) any {
	switch v := v.(type) {
	case Clock:
		return v.String()
	case time.Time:
		return v.Format("2006-01-02T15:04:05.000Z07:00")
	case string:
		return cut(v, maxShown)
	case json.Number:
		if len(v) > maxShown {
			return cut(string(v), maxShown)
		}
	case []any:
		return listed(v, slices.Values(v), "a list of %d", len(v))
	case map[string]any:
		return listed(v, maps.Values(v), "an object of %d", len(v))
	}
	return v
}

// listed is a short list or object of plain elements as JSON. For any other, it is how many
// elements it has.
func listed(v any, elements iter.Seq[any], count string, n int) string {
	plain := n <= maxListed
	for element := range elements {
		if !plain {
			break
		}
		kind := Kind(element)
		plain = kind != List && kind != Object
	}
	if plain {
		if text, err := json.Marshal(v); err == nil {
			return cut(string(text), maxShown)
		}
	}
	return fmt.Sprintf(count, n)
}
