package wire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"routemaster/internal/wire"
)

// A token is whatever jsontext takes for one, with the same text.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		`"a\"\u00e9\ud83d\ude00é"`, `"\ud800"`, "\"\xff\"", "\"\n\"", `"`, `"\`, `-0.5e+10`, `01`, `1.`, `-`, `1e`, ` true`, `nul`, `false`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := wire.New(text)
		kind, token, err := s.Token()
		if kind == '{' || kind == '[' {
			return // the value does not end here
		}
		valid := err == nil && s.AtEnd()
		require.Equal(t, jsontext.Value(text).IsValid(), valid, "%q", text)
		if valid && kind == '"' {
			want, err := jsontext.AppendUnquote(nil, strings.TrimSpace(text))
			require.NoError(t, err)
			require.Equal(t, string(want), token)
		}
	})
}
