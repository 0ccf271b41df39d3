package jobs

// MaxDepth is how deep a job's data may be nested: who reads a list of jobs finds it a little
// deeper, and parsers have limits.
const MaxDepth = 1000

// IsTooDeep reports whether data, which is valid JSON, is nested deeper than [MaxDepth].
func IsTooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++ // what is escaped ends no string
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
