package format

import (
	"bytes"
	"encoding/json"
	"math"
)

// jsonLevels is how many levels of a JSON value are indented. Deeper ones stay on one line:
// indentation takes as many bytes as there are elements, times their depth.
const jsonLevels = 16

// JSON writes a JSON text on several lines, so that it is easy to read, with its digits unchanged.
// If that would be longer than maxBytes, it writes the text on one line, which may still be longer.
// A text that is not JSON stays as it is.
func JSON(text []byte, maxBytes int) []byte {
	if !json.Valid(text) {
		return text
	}
	if indented, ok := layOut(text, jsonLevels, maxBytes); ok {
		return indented
	}
	compact, _ := layOut(text, 0, math.MaxInt)
	return compact
}

// layOut writes a JSON text with so many levels indented. It gives up, and ok is false, if the
// result is longer than maxBytes.
func layOut(text []byte, levels, maxBytes int) (laidOut []byte, ok bool) {
	laidOut = make([]byte, 0, len(text))
	depth, begun := 0, false // begun: after the bracket that begins an array or object
	newLine := func() {
		if depth <= levels && levels > 0 {
			laidOut = append(append(laidOut, '\n'), bytes.Repeat([]byte("  "), depth)...)
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			continue
		}
		ends := c == ']' || c == '}'
		if begun && !ends {
			newLine()
		}
		switch {
		case c == '"':
			end := i + stringLen(text[i:])
			laidOut = append(laidOut, text[i:end]...)
			i = end - 1
		case ends:
			within := depth <= levels
			depth--
			if !begun && within {
				newLine()
			}
			laidOut = append(laidOut, c)
		case c == '[' || c == '{':
			depth++
			laidOut = append(laidOut, c)
		case c == ',':
			laidOut = append(laidOut, c)
			newLine()
		case c == ':' && depth <= levels:
			laidOut = append(laidOut, ": "...)
		default:
			laidOut = append(laidOut, c)
		}
		begun = c == '[' || c == '{'
		if len(laidOut) > maxBytes {
			return nil, false
		}
	}
	return laidOut, true
}

// stringLen is the length of the quoted string that a JSON text begins with, in bytes.
func stringLen(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++ // an escaped character ends no string
		case '"':
			return i + 1
		}
	}
	return len(text)
}
