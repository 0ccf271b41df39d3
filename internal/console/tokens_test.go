package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// TestTwoTokensOfOneNameAreToldApart gives a client a second token. The first one holds the
// subscription, which is lost only with that token.
func TestTwoTokensOfOneNameAreToldApart(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d := consoletest.Full(t, redis)
		root := d.As(webtest.RootKey)
		loses := func(token string) bool {
			body := root.Send("tokens/"+console.TokenID(token)+"/revoke", nil).Body.String()
			lost := strings.Contains(body, "Its subscription goes with it, and its queue of 1 event.")
			assert.NotEqual(t, lost, strings.Contains(body, "No subscription goes with it."))
			assert.Contains(t, body, "fingerprint "+console.TokenID(token)+", of 2 tokens of this name.")
			return lost
		}
		queued := func(token string) string {
			list := root.Send("tokens?q=search", nil).Body.String()
			row := regexp.MustCompile(`(?s)id="token-` + console.TokenID(token) + `">.*?<td class="rank1 number">([^<]*)<`).FindStringSubmatch(list)
			require.NotNil(t, row)
			return row[1]
		}
		assert.Equal(t, "129,620", queued(search), "of the figures")
		other := "search--2"
		require.Equal(t, http.StatusCreated, d.Do(webtest.RootKey, "POST", "/api_tokens", `{"name":"search","token":"`+other+`"}`).Status)
		assert.Equal(t, []string{"1", "-"}, []string{queued(search), queued(other)})
		assert.True(t, loses(search))
		assert.False(t, loses(other))

		const none = "The token you are logged in with has no subscription."
		for token, lacks := range map[string]bool{search: false, other: true} {
			b := d.As(token)
			shown := b.Send("subscribers/search", nil).Body.String()
			assert.Equal(t, lacks, strings.Contains(shown, none))
			assert.Contains(t, shown, ">Topics</h2>")
			asks := b.Send("subscribers/search/retry", nil)
			assert.Equal(t, lacks, asks.Code == http.StatusNotFound && strings.Contains(asks.Body.String(), none))
		}

		status, _ := root.Submit("tokens/"+console.TokenID(other)+"/revoke", "name", "search")
		assert.Equal(t, http.StatusSeeOther, status)
		assert.Equal(t, http.StatusOK, d.Do(search, "GET", "/subscriber", "").Status)
	})
}
