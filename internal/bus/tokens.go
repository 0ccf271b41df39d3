package bus

import (
	"iter"
	"strings"
)

// Tokens is a list of tokens, in one string because it is only counted on the way.
type Tokens string

// All are the tokens.
func (t Tokens) All() iter.Seq[string] { return strings.FieldsSeq(string(t)) }

// Len is the number of tokens.
func (t Tokens) Len() int {
	if t == "" {
		return 0
	}
	return strings.Count(string(t), " ") + 1
}
