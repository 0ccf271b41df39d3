package console_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// TestTheOverviewHasTheLargestClients in the order of the figures, six at most.
func TestTheOverviewHasTheLargestClients(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	shown := func(all ...overview.Client) (rows []string, body string) {
		f := consoletest.Calm()
		f.Clients = all
		body = consoletest.New(t, rdbtest.Embedded(t), consoletest.Showing(f)).As(webtest.RootKey).Send("", nil).Body.String()
		for _, row := range regexp.MustCompile(`(?s)<tr id="client-.*?</tr>`).FindAllString(body, -1) {
			rows = append(rows, strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(row, " "))), " "))
		}
		return rows, body
	}
	rows, body := shown(
		overview.Client{Name: "billing", Kept: 24_300_000, Limit: new(int64(35_250_000)), Queued: 544},
		overview.Client{Name: "search", Queued: 12_950_000},
	)
	assert.Equal(t, []string{"billing 24.3 MB 35.2 MB 0.0 MB", "search 0.0 MB any 12.9 MB"}, rows)
	assert.Contains(t, body, "Clients, largest first")
	rows, _ = shown(make([]overview.Client, overview.MaxClients)...)
	assert.Len(t, rows, 6)
	rows, body = shown()
	require.Empty(t, rows)
	assert.NotContains(t, body, "Clients, largest")
}
