package format_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/format"
)

func TestJSONIsIndentedLikeTheLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`1`, `"a \" [ , : {"`, `[]`, ` { } `, `[[],{}]`, `{"a":1.0,"b":[1,"x: y",{"c":null}],"d":{"e":{}}}`, "[1 ,\n2]",
		strings.Repeat("[", 16) + "1,2" + strings.Repeat("]", 16),
	} {
		var want bytes.Buffer
		require.NoError(t, json.Indent(&want, []byte(text), "", "  "))
		assert.Equal(t, strings.TrimSpace(want.String()), string(format.JSON([]byte(text), math.MaxInt)))
	}
	assert.Equal(t, "{broken", string(format.JSON([]byte("{broken"), math.MaxInt)))
}

func TestJSONNestedDeepIsShort(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":[`, 4500) + strings.TrimSuffix(strings.Repeat("1, ", 10_000), ", ") + strings.Repeat(`]}`, 4500)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(deep)))
	shown := format.JSON([]byte(deep), math.MaxInt)
	assert.JSONEq(t, deep, string(shown))
	assert.Less(t, len(shown), compact.Len()+2000, "the library's would be 180 MB")
	assert.Equal(t, 32, bytes.Count(shown, []byte("\n")))
}

func TestJSONIsOnOneLineIfItWouldBeTooLong(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a": [1, 2, 3]}`)
	assert.Equal(t, `{"a":[1,2,3]}`, string(format.JSON(text, 20)))
	assert.Contains(t, string(format.JSON(text, 40)), "\n")
}
