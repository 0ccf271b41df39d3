//go:build !race

package browser_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

// tabTo presses the tab key until an element has the focus.
func (b *tab) tabTo(element string) {
	b.t.Helper()
	for range 100 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if ask[bool](b, "document.activeElement.matches("+strconv.Quote(element)+")") {
			return
		}
	}
	require.Fail(b.t, "the tab key does not lead there", element)
}

// press presses keys that lead to another page.
func (b *tab) press(keys string) {
	b.t.Helper()
	require.Equal(b.t, http.StatusOK, b.follow(chromedp.KeyEvent(keys)))
}

func TestTheKeyboardIsEnough(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	b := open(t, d)
	b.size(1280, "light")
	b.visit("login")
	b.await(`document.activeElement.id === "secret"`) // once the page is drawn, which may be after it is loaded
	b.run(chromedp.KeyEvent(webtest.RootKey))
	require.Equal(t, webtest.RootKey, ask[string](b, "document.activeElement.value"))
	b.press(kb.Enter)
	b.tabTo(".skip")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await(`document.activeElement.id === "main"`)

	b.visit("")
	b.tabTo(`nav.pages a[href$="subscribers"]`)
	b.press(kb.Enter)
	b.tabTo("input[type=search]")
	b.press("shop" + kb.Enter)
	assert.Contains(t, ask[string](b, "location.search"), "q=shop")
	assert.Equal(t, 1, ask[int](b, `document.querySelectorAll("#list tbody tr").length`))
	b.tabTo("#subscriber-shop a")
	b.press(kb.Enter)
	b.tabTo(`main a[href*="/pause"]`)
	b.press(kb.Enter)
	b.tabTo("main form button")
	b.press(kb.Enter)
	assert.Contains(t, b.text(".notice.done"), "Paused shop")

	b.tabTo(".menu summary")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector(".menu").open`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.querySelector(".menu").open && document.activeElement.localName === "summary"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.tabTo(`form[action$="logout"] button`)
	b.press(kb.Enter)
	assert.Equal(t, d.URL+"login", ask[string](b, "location.href"))
}

func TestScriptsAreNotNeeded(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Many(60)))
	d.Fill()
	b := open(t, d)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit("login?next=subscribers")
	b.fill("#secret", webtest.RootKey)
	require.Equal(t, http.StatusOK, b.click("form button"))
	rows := `document.querySelectorAll("#list tbody tr").length`
	assert.Equal(t, 50, ask[int](b, rows))
	require.Equal(t, http.StatusOK, b.click(".pager [rel=next]"))
	assert.Equal(t, 10, ask[int](b, rows))
	b.visit("subscribers/shop")
	require.Equal(t, http.StatusOK, b.click(`main a[href*="/pause"]`))
	require.Equal(t, http.StatusOK, b.click("main form button"))
	assert.Contains(t, b.text(".notice.done"), "Paused shop")
	b.visit("")
	assert.Positive(t, ask[int](b, `document.querySelectorAll("figure table tbody tr").length`), "charts have their figures as a table")
	b.run(chromedp.Click(chromedp.CSS(".menu summary")))
	require.Equal(t, http.StatusOK, b.click(`form[action$="logout"] button`))
	assert.Equal(t, d.URL+"login", ask[string](b, "location.href"))
}

// TestAChangedValueIsMarkedOnce changes a value, for visitors with and without reduced motion.
func TestAChangedValueIsMarkedOnce(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	b.do(`document.documentElement.addEventListener("refreshed", () => {
		window.marked = document.getAnimations().map((a) => a.effect.target.textContent + " for " + a.effect.getTiming().duration + " ms");
		window.width = document.querySelector("#subscriber-search td:nth-of-type(2)").offsetWidth;
	})`)
	width := ask[int](b, `document.querySelector("#subscriber-search td:nth-of-type(2)").offsetWidth`)
	for i, motion := range []string{"no-preference", "reduce"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}}})
		b.desk.Live.Change(func(f *overview.Figures) { subscriber(f, "search").Queued = 129_700 + int64(i) })
		b.refresh()
		assert.Equal(t, map[string][]string{"no-preference": {"129,700 for 600 ms"}, "reduce": {}}[motion], ask[[]string](b, "marked"), motion)
		assert.Equal(t, width, ask[int](b, "width"), motion)
		b.await("document.getAnimations().length === 0")
		b.refresh()
		assert.Empty(t, ask[[]string](b, "marked"), "nothing has changed")
	}
	moving := `[...document.querySelectorAll("*")].filter((e) => getComputedStyle(e).transitionDuration !== "0s" || getComputedStyle(e).animationName !== "none").length`
	assert.Zero(t, ask[int](b, moving))
}

func TestKeysCanBeSwitchedOff(t *testing.T) {
	b := watch(t, consoletest.Calm(), "display")
	b.do(`document.getElementById("keys").value = "off"`)
	require.Equal(t, http.StatusOK, b.click("main form button"))
	b.visit("subscribers")
	b.run(chromedp.KeyEvent("/"), chromedp.KeyEvent("p"), chromedp.KeyEvent("?"))
	assert.Equal(t, "body", ask[string](b, "document.activeElement.localName"))
	assert.Equal(t, "false", ask[string](b, `pause.getAttribute("aria-pressed")`))
	assert.Equal(t, b.desk.URL+"subscribers", ask[string](b, "location.href"))
}

// TestAListKeepsItsStateInTheURL goes through a list of 1,000.
func TestAListKeepsItsStateInTheURL(t *testing.T) {
	b := watch(t, consoletest.Many(1000), "subscribers")
	b.fill("input[type=search]", "service")
	require.Equal(t, http.StatusOK, b.click(".filter button"))
	require.Equal(t, http.StatusOK, b.click("#list th a"))
	before := ask[string](b, "location.href")
	require.Equal(t, http.StatusOK, b.click(".pager [rel=next]"))
	state := func() []string {
		return ask[[]string](b, `[location.href, document.querySelector("#list tbody tr").id, document.querySelector("input[type=search]").value,
			String(document.querySelectorAll("#list tbody tr").length)]`)
	}
	shown := state()
	at, err := url.Parse(shown[0])
	require.NoError(t, err)
	assert.Equal(t, url.Values{"q": {"service"}, "sort": {"name"}, "page": {"2"}}, at.Query())
	assert.Equal(t, []string{"service", "50"}, shown[2:])
	b.await("timers.size > 0")
	b.refresh()
	assert.Equal(t, shown, state(), "after a refresh")
	b.follow(chromedp.Reload())
	assert.Equal(t, shown, state(), "loaded again")
	b.do("history.back()") // which may load nothing, if the browser has kept the page
	require.Eventually(t, func() bool {
		at, err := chromedp.Run(b.Context, chromedp.Location())
		return err == nil && at == before
	}, stepTimeout, 10*time.Millisecond)
}
