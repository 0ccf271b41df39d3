package terminal

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"ébène 店":                   "ébène 店",
		"a\x1b[2J\nb\u202e\x7f":     `a\u001b[2J\u000ab\u202e\u007f`,
		"\U000e0001":                `\udb40\udc01`,
		"\u009b2J\t":                `\u009b2J\u0009`,
		"a \\ \" stays as it is \r": `a \ " stays as it is \u000d`,
	} {
		assert.Equal(t, want, Escape(text))
	}
	assert.Equal(t, "a\\u0009\nb", EscapeLines("a\t\nb"))
}

func TestEscapedJSONKeepsItsValue(t *testing.T) {
	const text = "a <b> & \U000e0001\u202e\x1b"
	shown := Escape(JSON(text))
	assert.Contains(t, shown, "a <b> & ")
	var read string
	require.NoError(t, json.Unmarshal([]byte(shown), &read))
	assert.Equal(t, text, read)
}
