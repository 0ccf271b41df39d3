//go:build !race

package browser_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// tail presses the button of the live tail, and waits until its state begins with some words.
func (b *tab) tail(says string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS("#tail-toggle")))
	b.await(fmt.Sprintf(`document.getElementById("tail-state").textContent.startsWith(%q)`, says))
}

// tailed are the events of a live tail whose address has a part.
func tailed(part string) string {
	return fmt.Sprintf(`[...document.getElementById("tail-rows").children].map((row) => row.textContent).filter((text) => text.includes(%q))`, part)
}

func TestTheLiveTailShowsEventsOfAnotherWeb(t *testing.T) {
	redis := rdbtest.Embedded(t)
	d := serveOn(t, redis, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	other := consoletest.New(t, redis)
	other.Serve()
	publish := func(url string) {
		other.RequireDone(consoletest.Warehouse, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/`+url+`","data":`+consoletest.Data+`}`)
	}
	root, shop := open(t, d), open(t, d)
	root.logIn(webtest.RootKey)
	shop.logIn(consoletest.Shop)
	for _, b := range []*tab{root, shop} {
		b.visit("topics/widgets")
		b.tail("Live")
	}
	require.Eventually(t, func() bool {
		publish("first") // until the other web process has heard of the watcher
		return len(ask[[]string](root, tailed("first"))) > 0 && len(ask[[]string](shop, tailed("first"))) > 0
	}, stepTimeout, 50*time.Millisecond)

	began := time.Now()
	for i := range 10 {
		publish(fmt.Sprint("then/", i))
	}
	for _, b := range []*tab{root, shop} {
		b.await(tailed("then/") + ".length >= 10")
		t.Log("10 events were shown after ", time.Since(began))
		events := ask[[]string](b, tailed("then/"))
		require.Len(t, events, 10)
		for i, event := range events {
			assert.Contains(t, event, fmt.Sprint("then/", i), "in order")
			assert.Contains(t, event, `"n":9007199254740993,"x":1.0,`)
		}
		assert.Zero(t, ask[int](b, `document.querySelectorAll("#tail-rows img").length`))
	}

	root.tail("Stopped")
	publish("last")
	shop.await(tailed("last") + ".length === 1")
	assert.Empty(t, ask[[]string](root, tailed("last")))

	shop.tail("Stopped")
	shop.expect("401 (Unauthorized)")
	require.Equal(t, http.StatusSeeOther, shop.session.Send("logout", url.Values{}).Code)
	shop.tail("It has ended")
}

// TestSevenTabs has more tabs than a browser has connections to one host.
func TestSevenTabs(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	first := open(t, d)
	first.logIn(webtest.RootKey)
	for i, says := range []string{"Live", "Live", "Live", "Live", "It has ended", "It has ended"} {
		b := first
		if i > 0 {
			b = first.another()
		}
		b.expect("429 (Too Many Requests)")
		require.Equal(t, http.StatusOK, b.visit("topics/widgets"))
		b.tail(says)
	}
	assert.Equal(t, http.StatusOK, first.another().visit("topics"))
}
