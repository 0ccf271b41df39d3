package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"routemaster/internal/bus"
	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
	"routemaster/internal/wire"
)

// TestEveryPage checks every page for every audience, in every state.
func TestEveryPage(t *testing.T) {
	rdbtest.OneRedisOnly(t, "what each page must have and lack is the same wherever the bus is")
	for name, c := range map[string]struct {
		desk   *consoletest.Desk
		client string
	}{
		"empty": {consoletest.New(t, rdbtest.Embedded(t)), webtest.Alice}, "full": {consoletest.Full(t, rdbtest.Embedded(t)), shop},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.desk
			root, client, screen, stranger := d.As(webtest.RootKey), d.As(c.client), d.As(webtest.RootKey, "look_only", "1"), d.Browser()
			for _, p := range console.All() {
				for who, b := range map[string]*consoletest.Browser{"root": root, "client": client, "screen": screen, "stranger": stranger} {
					w := b.Send(d.Path(p), nil)
					what := name + " /" + d.Path(p) + " as " + who
					switch {
					case who == "stranger":
						assert.Equal(t, http.StatusUnauthorized, w.Code, what)
					case who == "client" && p.For == console.Root:
						assert.Equal(t, http.StatusForbidden, w.Code, what)
					case name == "full":
						assert.Equal(t, http.StatusOK, w.Code, "%s: %s", what, w.Body)
					default: // there may be no such thing
						assert.Less(t, w.Code, 500, what)
					}
					requireClean(t, what, w.Body.String(), strings.Count(p.Path, "/"))
					if p.Submit != nil { // the clock at the top, and the bar at the bottom
						assert.LessOrEqual(t, strings.Count(w.Body.String(), " data-live"), 2, "%s: nothing moves where something is confirmed", what)
					}
				}
			}
			assert.NotContains(t, d.ConsoleLog.String(), "level=ERROR")
		})
	}
}

// TestAnIDStandsOnceOnThePageOfAQueue queues a housekeeping job twice: on a cluster each partition
// queues one.
func TestAnIDStandsOnceOnThePageOfAQueue(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it has one list for both")
	d := consoletest.Full(t, rdbtest.Embedded(t))
	p := d.Bus.First().Partition()
	entry := wire.PackJob(bus.Job{Name: bus.JobAutodrop})
	require.NoError(t, p.LPush(t.Context(), layout.Keys{Namespace: p.Namespace()}.Instant(bus.QueueAux), entry, entry).Err())
	body := d.As(webtest.RootKey).Send("work/aux", nil).Body.String()
	assert.Equal(t, 2, strings.Count(body, "<td>autodrop</td>"))
	requireClean(t, "work/aux", body, 1)
}

var anyTime = regexp.MustCompile(`<time[^>]*>[^<]*</time>`)

// live returns the parts of a page that live.js takes: its elements with data-live by their id, and
// those it takes from the head. Times are left out: some are later each time a page is made.
func live(t *testing.T, text string) map[string]string {
	t.Helper()
	document := parse(t, text)
	all := map[string]string{}
	for n := range document.Descendants() {
		attributes := attributesOf(n)
		switch {
		case isLive(n):
			all[attributes["id"]] = anyTime.ReplaceAllString(textOf(t, n), "<time>")
		case n.Data == "html":
			all["sampled"] = attributes["data-sampled"]
		case n.Data == "title" || attributes["rel"] == "icon":
			all[n.Data] = textOf(t, n)
		}
	}
	return all
}

func parse(t *testing.T, text string) *html.Node {
	t.Helper()
	document, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	return document
}

// isLive is whether a refresh changes an element.
func isLive(n *html.Node) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-live" })
}

func attributesOf(n *html.Node) map[string]string {
	all := map[string]string{}
	for _, a := range n.Attr {
		all[a.Key] = a.Val
	}
	return all
}

// textOf is an element as HTML.
func textOf(t *testing.T, n *html.Node) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, html.Render(&text, n))
	return text.String()
}

func TestARefreshHasAllThatMovesAndNothingAround(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it compares a page with itself")
	d := consoletest.Full(t, rdbtest.Embedded(t), consoletest.Showing(consoletest.Trouble()))
	root := d.As(webtest.RootKey)
	for _, p := range console.All() {
		if p.Submit == nil {
			loaded, refreshed := root.Send(d.Path(p), nil).Body.String(), root.Send(d.Path(p), nil, "X-Refresh", "1").Body.String()
			assert.Equal(t, live(t, loaded), live(t, refreshed), p.Path)
			assert.NotRegexp(t, "<nav|<symbol|<header", refreshed, p.Path)
		}
	}
	login := d.Browser().Send("", nil, "X-Refresh", "1").Body.String()
	assert.Contains(t, login, "</form>", "who is not logged in gets the whole page")
	assert.Contains(t, login, "console.css")
}

func TestEveryPageIsThereWhileRedisIsAway(t *testing.T) {
	redis := rdbtest.Real(t)
	d := consoletest.Full(t, redis)
	root, client := d.As(webtest.RootKey), d.As(shop)
	root.Send("", nil)
	client.Send("", nil)
	redis.Kill(t)
	for _, p := range console.All() {
		for who, b := range map[string]*consoletest.Browser{"root": root, "client": client} {
			w := b.Send(d.Path(p), nil)
			switch {
			case who == "client" && p.For == console.Root:
				assert.Equal(t, http.StatusForbidden, w.Code, "/%s as %s", p.Path, who)
			case p.Load == nil:
				assert.Equal(t, http.StatusOK, w.Code, "/%s as %s", p.Path, who)
			default: // pages that need the bus answer 503
				assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, w.Code, "/%s as %s", p.Path, who)
			}
			requireClean(t, p.Path+" as "+who, w.Body.String(), strings.Count(p.Path, "/"))
		}
	}
	assert.Equal(t, http.StatusServiceUnavailable, d.Browser().Send("login", map[string][]string{"secret": {shop}}).Code)
}

// requireClean fails the test if a page contains anything that its policy forbids or that must stay
// secret. Depth is the number of slashes in its path.
func requireClean(t *testing.T, what, text string, depth int) {
	t.Helper()
	for _, never := range []string{webtest.RootKey, webtest.Alice, "--1", consoletest.UUID, consoletest.Hostile, "%!", "0000 UTC"} {
		assert.NotContains(t, text, never, what)
	}
	assert.NotRegexp(t, onePlural, text, what)
	document := parse(t, text)
	ids, headings, refreshed, typing := map[string]bool{}, 0, false, false
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "h1" {
			headings++
		}
		assert.False(t, n.Data == "style" || n.Data == "base", "%s has <%s>", what, n.Data)
		attributes := attributesOf(n)
		for _, a := range n.Attr {
			assert.False(t, a.Key == "style" || strings.HasPrefix(a.Key, "on"), "%s has <%s %s=…>", what, n.Data, a.Key)
		}
		if id := attributes["id"]; id != "" {
			assert.False(t, ids[id], "%s has the id %s twice", what, id)
			ids[id] = true
		}
		refreshed = n.Data != "main" && (refreshed || isLive(n))
		assert.False(t, refreshed && attributes["class"] == "actions", "%s: a refresh moves the actions", what)
		typing = typing || isTypedInto(n)
		if n.Data == "script" {
			assert.NotEmpty(t, attributes["src"], "%s has a script of its own", what)
		}
		for _, link := range []string{"href", "src", "action"} {
			if to, ok := attributes[link]; ok {
				requireRelative(t, what, n.Data, to, depth)
			}
		}
	}
	assert.Equal(t, 1, headings, "%s: headings of the first rank", what)
	assert.False(t, typing && strings.Contains(text, "http-equiv"), "%s is loaded anew while somebody types", what)
}

// onePlural is one of something in the plural.
var onePlural = regexp.MustCompile(`(^|[^\d,.])1 (dead letters|failed attempts|events|attempts|threads|moves|batches|jobs|topics|subscribers|deliveries|tokens|sessions|labels)\b`)

// isTypedInto is whether an element is a field, also on a page without scripts.
func isTypedInto(n *html.Node) bool {
	has := func(n *html.Node, key, value string) bool {
		return slices.Contains(n.Attr, html.Attribute{Key: key, Val: value})
	}
	if n.Data != "input" && n.Data != "textarea" && n.Data != "select" || has(n, "type", "hidden") {
		return false
	}
	for above := range n.Ancestors() {
		if has(above, "hidden", "") {
			return false
		}
	}
	return true
}

func TestTheNavigationSaysWhereOneIs(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	alice := d.As(webtest.Alice)
	for path, want := range map[string]string{
		"": `aria-current="page">Overview<`, "topics/widgets": `aria-current="true">Topics<`, "subscribers": `aria-current="page">Subscribers<`,
		"machines/parcel/labels/p1": `aria-current="true">Machines<`, "help": "",
	} {
		body := alice.Send(path, nil).Body.String()
		assert.Equal(t, want != "", strings.Contains(body, "aria-current"), path)
		assert.Contains(t, body, want, path)
		assert.NotContains(t, body, ">Tokens<", "it is for root")
		assert.Equal(t, path != "subscribers", strings.Contains(body, `http-equiv="refresh"`), path)
		_, services, _ := strings.Cut(body, `<ul aria-label="Services">`)
		assert.Contains(t, services[:strings.Index(services, "</ul>")], ">Jobs<", path)
	}
}

// requireRelative fails the test unless a link leads within the console, or openly to another site.
func requireRelative(t *testing.T, what, element, to string, depth int) {
	t.Helper()
	if element == "a" && strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "#") {
		return
	}
	up := len(to)
	for rest := to; strings.HasPrefix(rest, "../"); rest = rest[3:] {
		up = len(rest) - 3
	}
	assert.LessOrEqual(t, (len(to)-up)/3, depth, "%s leaves the console: %s", what, to)
	assert.True(t, strings.HasPrefix(to, "./") || strings.HasPrefix(to, "../") || strings.HasPrefix(to, "?"),
		"%s has the link %s", what, to)
}

// TestTheOverviewShowsWhatCouldNotBeRead has no problem but that.
func TestTheOverviewShowsWhatCouldNotBeRead(t *testing.T) {
	rdbtest.OneRedisOnly(t, "its figures are made up")
	for _, unread := range [][]overview.Unread{nil, {{Part: overview.PartTopics, Why: "no answer", ReadAt: overview.Time{Time: consoletest.At}}}} {
		f := consoletest.Calm()
		f.Unread, f.Published = unread, nil
		f.History = &overview.Coverage{Subscribers: 310, AllSubscribers: 1000, Topics: 5, AllTopics: 5}
		d := consoletest.New(t, rdbtest.Embedded(t), consoletest.Showing(f))
		body := d.As(webtest.RootKey).Send("", nil).Body.String()
		assert.Equal(t, unread == nil, strings.Contains(body, "Nothing is wrong"))
		assert.Contains(t, body, "<dd data-mark>- <small>/s")
		assert.NotContains(t, body, "Events in dead letters", "there are none")
		assert.Contains(t, body, "History of 310 of 1,000 subscribers and 5 of 5 topics fits in 2 % of Redis.")
		if unread != nil {
			assert.Regexp(t, "The topics could not be read: no answer. What is shown of them is of <time[^>]*>03:53:10", body)
		}
	}
}

func TestProblemsLeadToWhatTheyAreAbout(t *testing.T) {
	f := consoletest.Calm()
	f.Problems = []overview.Problem{{JobType: "mail/all"}, {Machine: "parcel"}, {Subscriber: "shop"}, {Topic: "widgets"}}
	d := consoletest.New(t, rdbtest.Embedded(t), consoletest.Showing(f))
	body := d.As(webtest.RootKey).Send("", nil).Body.String()
	for _, to := range []string{"job-types/mail%2Fall", "machines/parcel", "subscribers/shop", "topics/widgets"} {
		assert.Contains(t, body, `href="./`+to+`"`)
	}
}

// TestFiguresAreNotAnnounced changes the figures first, and then the problems.
func TestFiguresAreNotAnnounced(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t), consoletest.Showing(consoletest.Trouble()))
	root := d.As(webtest.RootKey)
	for path, want := range map[string]string{
		"":                   " critical: events-dropped, search. warning: stalled, search. warning: behind, fraud. note: quiet, invoices.",
		"subscribers/search": "search is stalled. critical: events-dropped, search. warning: stalled, search.",
	} {
		assert.Equal(t, want, announced(t, root.Send(path, nil).Body.String()), path)
	}
	d.Live.Change(func(f *overview.Figures) { f.Problems = nil })
	assert.Equal(t, "Nothing is wrong.", announced(t, root.Send("", nil).Body.String()))
}

// announced returns the text of a page's status regions that a refresh changes.
func announced(t *testing.T, text string) (all string) {
	t.Helper()
	document := parse(t, text)
	for n := range document.Descendants() {
		if attributesOf(n)["role"] != "status" || !isLive(n) && !slices.ContainsFunc(slices.Collect(n.Ancestors()), isLive) {
			continue
		}
		for part := range n.Descendants() {
			if part.Type == html.TextNode {
				all += part.Data
			}
		}
	}
	return all
}
