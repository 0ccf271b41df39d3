package bus

import (
	"strings"
	"unicode/utf8"
)

// MaxReason is how many bytes of a text that others have made, such as an error of a connection or
// of a certificate, are stored, logged and shown.
const MaxReason = 256

// Reason returns a text that others have made, cut to [MaxReason].
func Reason(text string) string { return Excerpt(text, MaxReason) }

// ShortError returns an error with the [Reason] of another, which it wraps; nil for nil.
func ShortError(err error) error {
	if err == nil || len(err.Error()) <= MaxReason {
		return err
	}
	return &shortError{err}
}

type shortError struct{ long error }

func (e *shortError) Error() string { return Reason(e.long.Error()) }

func (e *shortError) Unwrap() error { return e.long }

// Excerpt returns a text of at most maxBytes, which are at least three: a longer one ends with an
// ellipsis. It is valid UTF-8.
func Excerpt(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return strings.ToValidUTF8(text, "?")
	}
	const mark = "…"
	end := maxBytes - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "?") + mark
}
