package rest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// TestHowManyCredentialsAreCut bounds the cost of a request whose user name is the part before the
// colon of many credentials.
func TestHowManyCredentialsAreCut(t *testing.T) {
	for _, n := range []int{maxCut, maxCut + 1} {
		names := map[bus.Token]bus.ClientName{}
		for i := range n {
			names[bus.Token(fmt.Sprintf("team:%d", i))] = "alice"
		}
		a := New(Config{NonceTTL: time.Minute}, &fixedTokens{names: names}, slog.New(slog.DiscardHandler), time.Now)
		tokens, _ := a.tokens.read(t.Context())
		hashed := 0
		client, err := tokens.match("team", func(secret string) bool {
			hashed++
			return secret == "7:"
		})
		assert.LessOrEqual(t, hashed, maxCut+3)
		if n > maxCut {
			assert.Equal(t, ErrRefused, err)
			continue
		}
		require.NoError(t, err)
		assert.EqualValues(t, "team:7", client.Token)
	}
}
