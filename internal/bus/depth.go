package bus

import "fmt"

// MaxDepth is how deep arrays and objects may be nested in a JSON value that clients choose freely:
// the data of events and jobs, and the metadata of labels. It bounds the cost of reading, storing
// and showing one. Values stored before this limit existed may be deeper.
const MaxDepth = 100

// TooDeep is the detail of a refusal of a value that is nested deeper than [MaxDepth].
var TooDeep = fmt.Sprintf("is nested more than %d deep", MaxDepth)

// IsTooDeep reports whether a text, which is valid JSON, is nested deeper than [MaxDepth].
func IsTooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // an escaped character ends no string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}
