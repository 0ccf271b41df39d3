//go:build !race

package browser_test

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/console/pages"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// violations finds with axe what keeps people from using a page.
func (b *tab) violations(rules string) []string {
	b.t.Helper()
	if !ask[bool](b, "'axe' in window") {
		b.run(chromedp.Evaluate[chromedp.Void](axe)) // no script element: the policy of the page stays in force
	}
	text := ask[string](b, `axe.run({runOnly: `+rules+`, resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map(
		(v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; "))))`)
	var all []string
	assert.NoError(b.t, json.Unmarshal([]byte(text), &all))
	return all
}

const (
	allRules      = `["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]`
	contrastRules = `{type: "rule", values: ["color-contrast"]}`
)

// look is how a page is looked at, and by which rules.
type look struct {
	width        int64
	theme, rules string
}

// looks are those at a template, and fewLooks those at pages with the template of another one.
var (
	looks = []look{
		{1280, "dark", contrastRules}, {390, "dark", allRules}, {390, "light", contrastRules}, {320, "light", ""}, {1280, "light", allRules},
	}
	fewLooks = []look{{320, "dark", ""}, {390, "dark", contrastRules}, {1280, "light", allRules}}
)

// requireUsable checks that a page can be used by all.
func (b *tab) requireUsable(name string, looks []look) {
	b.t.Helper()
	for _, look := range looks {
		b.size(look.width, look.theme)
		assert.LessOrEqual(b.t, ask[int](b, "document.documentElement.scrollWidth"), int(look.width), "%s at %d px", name, look.width)
		if look.rules != "" {
			assert.Empty(b.t, b.violations(look.rules), "%s at %d px, %s", name, look.width, look.theme)
			b.picture(name + "-" + look.theme + "-" + map[int64]string{1280: "wide", 390: "narrow"}[look.width])
		}
	}
}

func TestEachPageIsUsableByAll(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	b := open(t, d)
	b.logIn(webtest.RootKey)
	seen := map[string]bool{}
	for _, p := range pages.All() {
		path := d.Path(p)
		require.NotContains(t, path, "none", "the scene of the tests has no example for %s", p.Path)
		require.Equal(t, http.StatusOK, b.visit(path), path)
		some := looks
		if seen[p.Template] {
			some = fewLooks
		}
		seen[p.Template] = true
		b.requireUsable("page-"+p.Path, some)
	}
}

func TestTheLoginIsUsableByAll(t *testing.T) {
	b := open(t, serve(t, consoletest.Showing(consoletest.Calm())))
	b.visit("login")
	b.requireUsable("login", looks)
}

func TestTheOverviewIsUsableInEachStateOfTheBus(t *testing.T) {
	for name, figures := range map[string]overview.Figures{
		"calm": consoletest.Calm(), "away": consoletest.Away(), "empty": consoletest.Empty(),
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, serve(t, consoletest.Showing(figures)))
			b.logIn(webtest.RootKey)
			b.visit("")
			b.requireUsable("overview-"+name, looks[1:])
		})
	}
}
