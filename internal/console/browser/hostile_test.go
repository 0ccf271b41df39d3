//go:build !race

package browser_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
	"routemaster/internal/wire"
)

// TestTextOfOthersStaysText lets clients send text that would be an element or a script. The Ruby
// original may have stored text that the bus refuses today.
func TestTextOfOthersStaysText(t *testing.T) {
	const address, script = `https://x.example/"'><img/src=x/onerror=alert(1)>`, "javascript:alert(1)"
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	quoted := strings.ReplaceAll(address, `"`, `\"`)
	d.RequireDone(consoletest.Shop, "PATCH", "/subscriber", `{"callback":"`+quoted+`"}`)
	publish := func() {
		d.RequireDone(consoletest.Warehouse, "POST", "/topics/widgets", `{"type":"noop","url":"`+quoted+`","data":`+consoletest.Data+`}`)
	}
	publish()
	old := wire.PackedEvent(strings.Replace(string(storetest.Packed(t, "widgets", 1)), "https://x.example/1", script, 1))
	require.NoError(t, storetest.Publish(t.Context(), d.Home("widgets"), store.Publication{
		Topic: "widgets", Publisher: consoletest.Warehouse, Events: []wire.PackedEvent{old}, ReceivedAt: time.Now().UnixMilli(),
	}))

	b := open(t, d)
	b.logIn(webtest.RootKey)
	active := `document.images.length + document.querySelectorAll("[onerror], main script:not([src]), a[href^='javascript']").length`
	for path, texts := range map[string][]string{
		"subscribers/{subscriber}":                            {address},
		"subscribers/{subscriber}/settings":                   nil,
		"subscribers/{subscriber}/batches/{batch}":            {quoted, script, consoletest.Hostile, "9007199254740993", "1.0"},
		"job-types/{type}/jobs/{job}":                         {consoletest.Hostile},
		"machines/{machine}/labels/{label}":                   {consoletest.Hostile},
		"subscribers/{subscriber}/dead-letters/{letter}":      {consoletest.Hostile},
		"topics/{topic}/sent":                                 nil,
		"subscribers/{subscriber}/batches/{batch}/remove":     nil,
		"machines/{machine}/labels/{label}/metadata":          nil,
		"subscribers/{subscriber}/topics/{topic}/unsubscribe": nil,
	} {
		require.Equal(t, http.StatusOK, b.visit(d.Path(console.Page{Path: path})), path)
		for _, text := range texts {
			assert.Contains(t, b.text("main"), text, path)
		}
		assert.Zero(t, ask[int](b, active), path)
	}

	b.visit("topics/widgets")
	assert.Contains(t, b.text("#last-event"), script)
	b.tail("Live")
	require.Eventually(t, func() bool { publish(); return len(ask[[]string](b, tailed(quoted))) > 0 }, stepTimeout, 50*time.Millisecond)
	assert.Contains(t, b.text("#tail-rows"), consoletest.Hostile)
	assert.Zero(t, ask[int](b, active))
}
