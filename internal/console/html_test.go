package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/console/page"
	"routemaster/internal/console/pages"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// secret is a uuid that no page shows by itself.
const secret = "hush-4711"

// hostile is text of a publisher that must be shown as text.
const hostile = `</script><img src=x onerror=alert(1)>`

// fill has the bus have something of everything.
func (d *desk) fill() {
	d.RequireDone(webtest.Alice, "POST", "/subscription",
		`{"topics":["widgets","gadgets"],"callback":"https://a.example/its","uuid":"`+secret+`"}`)
	d.RequireDone(webtest.Bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","uuid":"`+secret+`"}`)
	d.RequireDone(webtest.Alice, "POST", "/topics/widgets",
		`{"type":"noop","url":"https://x.example/","data":"`+hostile+`"}`)
	d.Do(webtest.RootKey, "PUT", "/state-machines",
		`{"state_machines":{"parcel":{"states":[{"gate":"start","exit_condition":"metadata.go","next":"end"},{"gate":"end","exit_condition":false}]}}}`)
	d.Do(webtest.Alice, "POST", "/state-machines/parcel/labels/p1?wait=0", `{"metadata":{"go":false,"t":"`+hostile+`"}}`)
}

// placeholder is a name in the path of a page.
var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// examples are what stands for the names in the paths of pages.
var examples = map[string]string{"topic": "widgets", "subscriber": "alice", "client": "alice", "machine": "parcel", "label": "p1"}

func pathOf(p page.Page) string {
	return placeholder.ReplaceAllStringFunc(p.Path, func(name string) string {
		if example, ok := examples[strings.Trim(name, "{}")]; ok {
			return example
		}
		return "none"
	})
}

// TestEveryPage requires of every page, for everybody and in every state, what no page may lack.
func TestEveryPage(t *testing.T) {
	for name, fill := range map[string]bool{"empty": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, rdbtest.Embedded(t), func(c *console.Config) {
				if fill {
					c.Live = consoletest.NewLive(consoletest.Trouble())
				}
			})
			if fill {
				d.fill()
			}
			root, alice, screen, stranger := d.as(t, webtest.RootKey), d.as(t, webtest.Alice), d.as(t, webtest.RootKey, "look_only", "1"), d.browser(t)
			for _, p := range pages.All() {
				for who, b := range map[string]*browser{"root": root, "alice": alice, "screen": screen, "stranger": stranger} {
					w := b.send(pathOf(p), nil)
					what := name + " /" + p.Path + " as " + who
					switch {
					case who == "stranger":
						assert.Equal(t, http.StatusUnauthorized, w.Code, what)
					case who == "alice" && p.For == page.Root:
						assert.Equal(t, http.StatusForbidden, w.Code, what)
					case fill && !strings.Contains(pathOf(p), "none"):
						assert.Equal(t, http.StatusOK, w.Code, "%s: %s", what, w.Body)
					default: // there may be no such thing
						assert.Less(t, w.Code, 500, what)
					}
					requireClean(t, what, w.Body.String(), strings.Count(p.Path, "/"))
				}
			}
			assert.NotContains(t, d.log.String(), "level=ERROR")
		})
	}
}

func TestEveryPageIsThereWhileRedisIsAway(t *testing.T) {
	redis := rdbtest.Real(t)
	d := newDesk(t, redis, func(c *console.Config) { c.Live = consoletest.NewLive(consoletest.Trouble()) })
	d.fill()
	root, alice := d.as(t, webtest.RootKey), d.as(t, webtest.Alice)
	root.send("", nil)
	alice.send("", nil)
	redis.Kill(t)
	for _, p := range pages.All() {
		for who, b := range map[string]*browser{"root": root, "alice": alice} {
			w := b.send(pathOf(p), nil)
			switch {
			case who == "alice" && p.For == page.Root:
				assert.Equal(t, http.StatusForbidden, w.Code, "/%s as %s", p.Path, who)
			case p.Load == nil:
				assert.Equal(t, http.StatusOK, w.Code, "/%s as %s", p.Path, who)
			default: // what only the bus has is not there
				assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, w.Code, "/%s as %s", p.Path, who)
			}
			requireClean(t, p.Path+" as "+who, w.Body.String(), strings.Count(p.Path, "/"))
		}
	}
	assert.Equal(t, http.StatusServiceUnavailable, d.browser(t).send("login", map[string][]string{"secret": {webtest.Alice}}).Code)
}

// requireClean fails the test if a page has what its policy forbids or nobody should see. Depth is
// how many slashes its path has.
func requireClean(t *testing.T, what, text string, depth int) {
	t.Helper()
	for _, never := range []string{webtest.RootKey, webtest.Alice, webtest.Bob, secret, hostile, "%!"} {
		assert.NotContains(t, text, never, what)
	}
	document, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	ids, headings := map[string]bool{}, 0
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "h1" {
			headings++
		}
		assert.False(t, n.Data == "style" || n.Data == "base", "%s has <%s>", what, n.Data)
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			assert.False(t, a.Key == "style" || strings.HasPrefix(a.Key, "on"), "%s has <%s %s=…>", what, n.Data, a.Key)
		}
		if id := attributes["id"]; id != "" {
			assert.False(t, ids[id], "%s has the id %s twice", what, id)
			ids[id] = true
		}
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
	for _, warnings := range [][]string{nil, {"The topics could not be read: Redis did not answer."}} {
		f := consoletest.Calm()
		f.Warnings, f.Published = warnings, nil
		d := newDesk(t, rdbtest.Embedded(t), func(c *console.Config) { c.Live = consoletest.NewLive(f) })
		body := d.as(t, webtest.RootKey).send("", nil).Body.String()
		assert.Equal(t, warnings == nil, strings.Contains(body, "Nothing is wrong"))
		assert.Contains(t, body, "<dd>- <small>/s")
		for _, text := range warnings {
			assert.Contains(t, body, text)
		}
	}
}
