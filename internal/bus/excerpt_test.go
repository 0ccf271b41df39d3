package bus_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "",
		"12345678":     "12345678",
		"123456789":    "12345…",
		"1234é6789":    "1234…",
		"123é56789":    "123é…",
		"a\xffb":       "a?b",
		"\x80\x80\x80": "?",
	} {
		assert.Equal(t, want, bus.Excerpt(text, 8))
	}
	for _, text := range []string{strings.Repeat("x", 26_000), strings.Repeat("\x80", 26_000), strings.Repeat("店", 26_000)} {
		reason := bus.Reason(text)
		assert.LessOrEqual(t, len(reason), bus.MaxReason)
		assert.True(t, utf8.ValidString(reason))
		assert.True(t, strings.HasSuffix(reason, "…"))
	}
}
