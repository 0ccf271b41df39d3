package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/console"
)

// TestBodiesAreReadByAnotherLibrary also has parts and what is around them be empty.
func TestBodiesAreReadByAnotherLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(0, 5000).Draw(t, "times"))
		})
		part := console.NewPart([]byte(text.Draw(t, "part")))
		for range 2 { // a part is for many bodies
			before, after := text.Draw(t, "before"), text.Draw(t, "after")
			body := part.Body([]byte(before), []byte(after))
			r, err := gzip.NewReader(bytes.NewReader(body))
			require.NoError(t, err)
			r.Multistream(false) // browsers read the first member alone
			got, err := io.ReadAll(r)
			require.NoError(t, err, "with the right checksum and size")
			require.Equal(t, before+string(part.Text())+after, string(got))
		}
	})
}

func TestAPartIsCompressed(t *testing.T) {
	part := console.NewPart([]byte(strings.Repeat("a row of a table, ", 1000)))
	assert.Less(t, part.Size(), len(part.Text())+200)
	assert.Less(t, len(part.Body([]byte("<html>"), []byte("</html>"))), 300)
}
