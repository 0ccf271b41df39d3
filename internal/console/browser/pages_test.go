//go:build !race

package browser_test

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/console/pages"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// names stand for those in the paths of pages. What they have no name for is not there: then the
// page says so.
var names = strings.NewReplacer("{topic}", "widgets", "{subscriber}", "alice")

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

// looks are those at a template. Pages with the template of another one get the last two.
var looks = []look{
	{1280, "dark", contrastRules}, {390, "dark", allRules}, {390, "light", contrastRules}, {320, "light", ""}, {1280, "light", allRules},
}

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

// furnish gives the bus a topic, and alice a subscription with what waits for her.
func (d *desk) furnish() {
	d.Do(webtest.Alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://alice.example/events","uuid":"secret-uuid"}`)
	for range 3 {
		d.Do(webtest.Bob, "POST", "/topics/widgets", `{"type":"update","url":"https://bob.example/widgets/1","data":{"n":9007199254740993}}`)
	}
}

func TestEachPageIsUsableByAll(t *testing.T) {
	d := newDesk(t, consoletest.Trouble())
	d.furnish()
	b := open(t, d)
	b.expect("404 (Not Found)") // of pages about what is not there
	b.logIn(webtest.RootKey)
	seen := map[string]bool{}
	for _, p := range pages.All() {
		some := looks
		if seen[p.Template] {
			some = looks[len(looks)-2:]
		}
		seen[p.Template] = true
		b.visit(names.Replace(p.Path))
		b.requireUsable("page-"+p.Path, some)
	}
}

func TestTheLoginIsUsableByAll(t *testing.T) {
	b := open(t, newDesk(t, consoletest.Calm()))
	b.visit("login")
	b.requireUsable("login", looks)
}

func TestTheOverviewIsUsableInEachStateOfTheBus(t *testing.T) {
	for name, figures := range map[string]overview.Figures{
		"calm": consoletest.Calm(), "away": consoletest.Away(), "empty": consoletest.Empty(),
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, newDesk(t, figures))
			b.logIn(webtest.RootKey)
			b.visit("")
			b.requireUsable("overview-"+name, looks[1:])
		})
	}
}
