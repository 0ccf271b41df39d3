package condition

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrUnknown is the error of a feed that was not asked: a test that depends on it has no value.
var ErrUnknown = errors.New("the feed was not asked")

// Position is a place in a source. Offset is in bytes, from 0; Line and Column count from 1, and a
// column is a character.
type Position struct{ Offset, Line, Column int }

// SyntaxError says why a source is no condition, or a text no path. The part at fault is Length
// bytes at the position; with a length of 0, something is missing there.
type SyntaxError struct {
	Position
	Length         int
	Source, Reason string
}

// Error gives the place, the reason, and the line of the source with a marker under the part at
// fault.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s\n%s", e.Line, e.Column, e.Reason, e.excerpt())
}

const (
	maxExcerpt = 100 // characters of a line that an error shows
	maxSpan    = 60  // of the part that cannot be evaluated
)

// excerpt returns the faulty line with a marker below it. A long line is cut to the surroundings of
// the fault.
func (e *SyntaxError) excerpt() string {
	start := strings.LastIndexByte(e.Source[:e.Offset], '\n') + 1
	line, _, _ := strings.Cut(e.Source[start:], "\n")
	runes := []rune(printable(strings.TrimSuffix(line, "\r")))
	from := utf8.RuneCountInString(e.Source[start:e.Offset])
	to := from + max(1, utf8.RuneCountInString(e.Source[e.Offset:min(e.Offset+e.Length, start+len(line))]))
	if first := max(0, from-maxExcerpt/2); len(runes) > maxExcerpt {
		runes = runes[first:min(len(runes), first+maxExcerpt)]
		from, to = from-first, min(to-first, maxExcerpt)
	}
	return fmt.Sprintf("    %s\n    %s%s", string(runes), strings.Repeat(" ", from), strings.Repeat("^", to-from))
}

// printable replaces each character of a source that would move the marker below it, or change
// what a terminal does.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return r
		}
		return ' '
	}, text)
}

// EvaluationError says why a condition, or a path, has no value for a label. The part that has
// none is Length bytes at the position. Err, if it is not nil, is the error of the feed.
type EvaluationError struct {
	Position
	Length         int
	Source, Reason string
	Err            error
}

// Error gives, in one line, the place, the reason and the part that has no value.
func (e *EvaluationError) Error() string {
	part := printable(cut(normalize(e.Source[e.Offset:e.Offset+e.Length]), maxSpan))
	return fmt.Sprintf("line %d, column %d: %s: %s", e.Line, e.Column, e.Reason, part)
}

// Unwrap returns the error of the feed.
func (e *EvaluationError) Unwrap() error { return e.Err }

// cut shortens a text to a limit of characters, with an ellipsis.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
