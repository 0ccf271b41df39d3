//go:build !race

package browser_test

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// violations finds accessibility violations of a page with axe.
func (b *tab) violations() []string {
	b.t.Helper()
	if !ask[bool](b, "'axe' in window") {
		b.run(chromedp.Evaluate[chromedp.Void](axe)) // no script element: the policy of the page stays in force
	}
	text := ask[string](b, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"], preload: false}).then(
		(r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; "))))`)
	var all []string
	assert.NoError(b.t, json.Unmarshal([]byte(text), &all))
	return all
}

// looks are how a page is looked at: the width in px, the theme, and whether by the rules of axe.
// With each theme its colours are the same at any width.
var looks = []struct {
	width int64
	theme string
	rules bool
}{{390, "dark", true}, {320, "light", false}, {1280, "light", true}}

// requireUsable checks that a page can be used by all; byRules is whether axe looks, too.
func (b *tab) requireUsable(name string, byRules bool) {
	b.t.Helper()
	for _, look := range looks {
		b.size(look.width, look.theme)
		assert.LessOrEqual(b.t, ask[int](b, "document.documentElement.scrollWidth"), int(look.width), "%s at %d px", name, look.width)
		if look.rules && byRules {
			assert.Empty(b.t, b.violations(), "%s at %d px, %s", name, look.width, look.theme)
		}
	}
	b.pictures(name)
}

func TestEachPageIsUsableByAll(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	b := open(t, d)
	b.visit("login")
	b.requireUsable("login", true)
	b.logIn(webtest.RootKey)
	seen := map[string]bool{} // pages of one template differ in their texts
	for _, p := range console.All() {
		path := d.Path(p)
		require.NotContains(t, path, "none", "the scene of the tests has no example for %s", p.Path)
		require.Equal(t, http.StatusOK, b.visit(path), path)
		b.requireUsable("page-"+p.Path, !seen[p.Template])
		seen[p.Template] = true
	}
	for name, figures := range map[string]overview.Figures{
		"calm": consoletest.Calm(), "away": consoletest.Away(), "empty": consoletest.Empty(),
	} {
		d.Live.Change(func(f *overview.Figures) { *f = figures })
		b.visit("")
		b.requireUsable("overview-"+name, true)
	}
}

// TestLongNamesFit has the longest names that the bus takes, of one word.
func TestLongNamesFit(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	topic, label := strings.Repeat("m", 64), strings.Repeat("l", 300)
	d.RequireDone(consoletest.Warehouse, "POST", "/topics/"+topic, webtest.EventText(1))
	made := d.Do(consoletest.Shop, "POST", "/state-machines/parcel/labels/"+label+"?wait=0", `{"metadata":{}}`)
	require.Equal(t, http.StatusCreated, made.Status, made.Body)
	b := open(t, d)
	b.logIn(webtest.RootKey)
	for _, path := range []string{
		"topics/" + topic, "topics/" + topic + "/delete", "machines/parcel", "machines/parcel/labels/" + label,
		"machines/parcel/labels/" + label + "/delete", "machines/parcel/labels/" + label + "/evaluate",
		"machines/parcel/labels/" + label + "/metadata",
	} {
		require.Equal(t, http.StatusOK, b.visit(path), path)
		b.requireUsable("long-"+strings.NewReplacer(topic, "m", label, "l").Replace(path), false)
	}
}
