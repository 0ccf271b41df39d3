//go:build !race

package browser_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

// timers have the timers of a page run when a test says so: an interval is never waited for.
const timers = `
	window.wait = window.setTimeout;
	window.timers = new Map();
	let id = 0;
	window.setTimeout = (run, ms) => (timers.set(++id, run), id);
	window.clearTimeout = (id) => timers.delete(id);
	window.elapse = () => { const due = [...timers.values()]; timers.clear(); due.forEach((run) => run()); };
`

// clockwork has the timers of the pages that are opened from now on run when the test says so.
func (b *tab) clockwork() {
	b.t.Helper()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timers})
}

// watch opens a page whose timers run when the test says so.
func watch(t testing.TB, figures overview.Figures, path string) *tab {
	t.Helper()
	b := open(t, serve(t, consoletest.Showing(figures)))
	b.clockwork()
	b.size(1280, "light")
	b.logIn(webtest.RootKey)
	b.visit(path)
	b.await("timers.size > 0")
	return b
}

// refresh has the interval elapse, and waits until the page shows the answer.
func (b *tab) refresh() {
	b.t.Helper()
	b.do("window.before = Number(document.documentElement.dataset.refreshed ?? 0); elapse();")
	b.await("Number(document.documentElement.dataset.refreshed) > before")
}

// point moves the pointer to an element.
func (b *tab) point(selector string) {
	b.t.Helper()
	at := ask[[]float64](b, `(() => { const r = document.querySelector("`+selector+`").getBoundingClientRect(); return [r.x + 2, r.y + 2]; })()`)
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
}

const (
	search   = `document.querySelector("#subscriber-search td:nth-of-type(2)").textContent`
	firstRow = `document.querySelector("#list tbody tr").id`
)

func TestARefreshKeepsWhatSomebodyIsDoing(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	b.do(`
		const filter = document.querySelector("input[type=search]");
		filter.focus();
		filter.value = "search";
		filter.setSelectionRange(2, 4);
		scrollTo(0, 200);
	`)
	b.desk.Live.Change(func(f *overview.Figures) { subscriber(f, "search").Queued = 129_700 })
	b.refresh()
	assert.Equal(t, "129,700", ask[string](b, search))
	assert.Equal(t, "search", ask[string](b, "document.activeElement.value"))
	assert.Equal(t, []int{2, 4}, ask[[]int](b, "[document.activeElement.selectionStart, document.activeElement.selectionEnd]"))
	assert.Equal(t, 200, ask[int](b, "scrollY"))
}

func TestARefreshKeepsSelectedText(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	b.do(`
		const figure = document.querySelector("#subscriber-search td:nth-of-type(2)").firstChild;
		getSelection().setBaseAndExtent(figure, 0, figure, 7);
	`)
	b.desk.Live.Change(func(f *overview.Figures) {
		subscriber(f, "search").State, subscriber(f, "search").Queued = overview.OK, 0
	})
	b.refresh()
	assert.Equal(t, "129,620", ask[string](b, "getSelection().toString()"))
	assert.Equal(t, "subscriber-search", ask[string](b, firstRow), "something in the table is selected")
	b.do("getSelection().empty()")
	b.refresh()
	assert.Equal(t, "0", ask[string](b, search))
	assert.Equal(t, "subscriber-fraud", ask[string](b, firstRow))
}

func TestARefreshKeepsWhatIsOpen(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "")
	b.do(`document.querySelector("figure details").open = true;`)
	b.desk.Live.Change(func(f *overview.Figures) { f.Queued = 7 })
	b.refresh()
	assert.True(t, ask[bool](b, `document.querySelector("figure details").open`))
	assert.Contains(t, ask[string](b, `document.getElementById("tiles").textContent`), "7")
}

func TestADefinitionStaysOpen(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	open := `document.querySelector("#define-subscribers-queued").matches(":popover-open")`
	b.do(`document.querySelector("[popovertarget=define-subscribers-queued]").focus();`)
	b.run(chromedp.KeyEvent("\r"))
	assert.True(t, ask[bool](b, open))
	b.desk.Live.Change(func(f *overview.Figures) { subscriber(f, "search").Queued = 1 })
	b.refresh()
	assert.True(t, ask[bool](b, open))
}

func TestNoControlMovesUnderThePointer(t *testing.T) {
	b := watch(t, consoletest.Calm(), "subscribers")
	b.desk.Fill()
	b.visit("subscribers/shop")
	b.await("timers.size > 0")
	const control = "main figure summary"
	b.point(control)
	at := `document.querySelector("` + control + `").getBoundingClientRect().top`
	before := ask[float64](b, at)
	trouble := []overview.Problem{
		{Rule: "failing", Severity: overview.Warning, Title: "shop is failing.", Detail: "It answers 503.", Subscriber: "shop"},
		{Rule: "dead-letters", Severity: overview.Note, Title: "shop has dead letters.", Detail: "There are 3.", Subscriber: "shop"},
	}
	for n := range 3 { // the verdict above it grows and shrinks
		b.desk.Live.Change(func(f *overview.Figures) { f.Problems = trouble[:2-n] })
		b.refresh()
		assert.InDelta(t, before, ask[float64](b, at), 1, "%d problems", 2-n)
	}
}

func TestPausedAndHiddenTabsAskForNothing(t *testing.T) {
	b := watch(t, consoletest.Calm(), "subscribers")
	hide := func(hidden string) {
		b.do(`Object.defineProperty(document, "hidden", {value: ` + hidden + `, configurable: true}); document.dispatchEvent(new Event("visibilitychange"));`)
	}
	for name, stop := range map[string]struct{ off, on func() }{
		"paused": {func() { b.do("pause.click()") }, func() { b.do("pause.click()") }},
		"hidden": {func() { hide("true") }, func() { hide("false") }},
	} {
		b.refresh()
		stop.off()
		b.requested()
		b.do("elapse(); elapse();")
		assert.Empty(t, b.requested(), name)
		b.do("window.before = Number(document.documentElement.dataset.refreshed);")
		stop.on() // it asks at once: no timer runs
		b.await("Number(document.documentElement.dataset.refreshed) > before")
	}
}

func TestAnAnswerThatIsOlderIsDropped(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	b.desk.Live.Change(func(f *overview.Figures) {
		f.At = f.At.Add(-20 * time.Second)
		subscriber(f, "search").Queued = 1
	})
	b.do("elapse();")
	b.await("timers.size > 0") // the answer has come: the next refresh is due later
	assert.Equal(t, "129,620", ask[string](b, search))

	b.desk.Live.Change(func(f *overview.Figures) { f.At = f.At.Add(-time.Hour) })
	b.refresh() // a clock was set back
	assert.Equal(t, "1", ask[string](b, search))
}

func TestASessionThatHasEndedLeavesThePage(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers?sort=name")
	b.expect("401 (Unauthorized)")
	require.Equal(t, http.StatusSeeOther, b.session.Send("logout", url.Values{}).Code)
	b.do("elapse();")
	b.await(`!document.getElementById("session-over").hidden`)
	assert.Equal(t, "129,620", ask[string](b, search))
	assert.Contains(t, ask[string](b, `document.querySelector("#session-over a").search`), "next=subscribers%3Fsort%3Dname")
}

func TestKeys(t *testing.T) {
	b := watch(t, consoletest.Calm(), "subscribers")
	b.run(chromedp.KeyEvent("/"))
	assert.Equal(t, "search", ask[string](b, "document.activeElement.type"))
	b.run(chromedp.KeyEvent("p"))
	assert.Equal(t, "false", ask[string](b, `pause.getAttribute("aria-pressed")`), "it was typed into the filter")
	b.do("document.activeElement.blur()")
	b.run(chromedp.KeyEvent("p"))
	assert.Equal(t, "true", ask[string](b, `pause.getAttribute("aria-pressed")`))
	b.run(chromedp.KeyEvent("?"))
	b.await(`location.pathname.endsWith("/help")`)
}

// subscriber is one of the figures.
func subscriber(f *overview.Figures, name string) *overview.Subscriber {
	for i := range f.Subscribers {
		if f.Subscribers[i].Name == name {
			return &f.Subscribers[i]
		}
	}
	panic("there is no subscriber " + name)
}

// TestNothingMovesUnderThePointer changes everything on a page while a visitor is about to click.
// Buttons that define figures do nothing else and stand inside the refreshed part, so they may
// move.
func TestNothingMovesUnderThePointer(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	b := open(t, d)
	b.clockwork()
	b.size(1280, "light")
	b.logIn(webtest.RootKey)
	controls := `JSON.stringify([...document.querySelectorAll("main .actions a, main button:not(.define), main input")].map((e) => { const r = e.getBoundingClientRect(); return [r.x, r.y, e.textContent]; }))`
	trouble := consoletest.Trouble().Problems
	for _, path := range []string{"subscribers/shop", "subscribers/shop/delete", "topics/widgets", "subscribers"} {
		b.visit(path)
		b.await("timers.size > 0")
		before := ask[string](b, controls)
		assert.NotEqual(t, "[]", before, path)
		for i := range 20 {
			d.Live.Change(func(f *overview.Figures) {
				f.Problems = nil
				for _, p := range trouble[:i%len(trouble)] {
					p.Subscriber, p.Topic = "shop", "widgets"
					f.Problems = append(f.Problems, p)
				}
				subscriber(f, "shop").Queued = int64(i) * 99_999
			})
			b.refresh()
			require.Equal(t, before, ask[string](b, controls), path)
		}
	}
	b.visit("subscribers/shop/delete")
	assert.Regexp(t, "^Delete shop and drop [0-9]+ events?$", b.text("main form button.danger"))
	b.fill("#name", "search")
	b.expect("422 (Unprocessable Entity)")
	assert.Equal(t, http.StatusUnprocessableEntity, b.click("main form button.danger"))
	assert.Contains(t, b.text("#problem"), "type shop")
}

func TestThePageStaysWhileRedisIsAway(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "subscribers")
	away := consoletest.Away()
	b.desk.Live.Change(func(f *overview.Figures) {
		f.Redis, f.RedisLostAt, f.Problems = away.Redis, away.RedisLostAt, away.Problems
	})
	b.refresh()
	assert.Contains(t, b.text("#away"), "Redis has not answered since 03:54:16.")
	assert.Equal(t, "129,620", ask[string](b, search))
	assert.Contains(t, ask[string](b, "document.title"), "✖")
	b.desk.Live.Change(func(f *overview.Figures) { f.Redis, f.RedisLostAt, f.Problems = "", overview.Time{}, nil })
	b.refresh()
	assert.Empty(t, b.text("#away"))
	assert.NotContains(t, ask[string](b, "document.title"), "✖")
}

func TestAPageThatNeedsRedisStaysWhileItIsAway(t *testing.T) {
	b := watch(t, consoletest.Trouble(), "tokens")
	away := consoletest.Away()
	b.desk.Live.Change(func(f *overview.Figures) {
		f.Redis, f.RedisLostAt, f.Problems = away.Redis, away.RedisLostAt, away.Problems
	})
	b.desk.Break("/api_tokens")
	b.expect("503 (Service Unavailable)", "503 for ")
	b.refresh()
	assert.Contains(t, b.text("#away"), "Redis has not answered")
	assert.Equal(t, "Tokens", b.text("h1"))
	assert.Regexp(t, "^✖ [0-9]+ · Tokens · ", ask[string](b, "document.title"))
	assert.NotEmpty(t, b.text("main table"))
}

// TestAPageSaysThatPartOfRedisIsAway has Redis answer for the figures, and not for the page.
func TestAPageSaysThatPartOfRedisIsAway(t *testing.T) {
	b := watch(t, consoletest.Calm(), "tokens")
	b.desk.Break("/api_tokens")
	b.expect("503 (Service Unavailable)", "503 for ")
	b.do("elapse();")
	b.await("!stale.hidden")
	assert.Regexp(t, `^503 Service Unavailable: .* What stands here is of \d+ s ago\.$`, b.text("#stale"))
	assert.NotEmpty(t, b.text("main table"))
}

func TestAPageThatIsNoLongerThereSaysWhy(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Empty()))
	d.Fill()
	b := open(t, d)
	b.clockwork()
	b.logIn(webtest.RootKey)
	require.Equal(t, http.StatusOK, b.visit("subscribers/shop"))
	b.await("timers.size > 0")
	d.RequireDone(consoletest.Shop, "DELETE", "/subscriber", "")
	b.expect("404 (Not Found)")
	b.do("elapse();")
	b.await("!stale.hidden")
	assert.Regexp(t, `^404 Not Found: There is no subscriber shop\. What stands here is of \d+ s ago\.$`, b.text("#stale"))
	assert.Equal(t, "shop", b.text("h1"), "the page stays")
	b.do(`
		const now = Date.now;
		Date.now = () => now() + 3_600_000; // in another tab
		document.dispatchEvent(new Event("visibilitychange"));
	`)
	b.await(`timers.size > 0 && / is of 36\d\d s ago/.test(stale.textContent)`)

	d.RequireDone(consoletest.Shop, "POST", "/subscriber", `{"topics":["widgets"],"callback":"https://shop.example/events"}`)
	b.refresh()
	assert.True(t, ask[bool](b, "stale.hidden"))
}
