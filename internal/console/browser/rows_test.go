//go:build !race

package browser_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

// underPointer is the row that [tab.point] has pointed into last.
const underPointer = `document.querySelector("tbody tr:hover")?.id`

func TestRowsStayWhereThePointerIs(t *testing.T) {
	for path, list := range map[string]string{"subscribers": "#list tbody", "": "#subscribers-rows"} {
		b := watch(t, consoletest.Trouble(), path)
		first := `document.querySelector("` + list + ` tr").id`
		require.Equal(t, "subscriber-search", ask[string](b, first), path)
		b.do(`document.getElementById("subscriber-search").scrollIntoView();`)
		b.point("#subscriber-search td")
		b.desk.Live.Change(func(f *overview.Figures) {
			subscriber(f, "search").State, subscriber(f, "search").Queued = overview.OK, 0
		})
		b.refresh()
		assert.Equal(t, "subscriber-search", ask[string](b, first), "%q: the pointer is in the table", path)
		assert.Equal(t, "subscriber-search", ask[string](b, underPointer), path)
		if path == "" { // it is not among the worst any more
			assert.True(t, ask[bool](b, `document.getElementById("subscriber-search").matches(".gone")`))
		} else {
			assert.Equal(t, "0", ask[string](b, search))
		}
		b.do("scrollTo(0, 0);")
		b.point("h1")
		b.refresh()
		assert.Equal(t, "subscriber-fraud", ask[string](b, first), path)
	}
}

// TestALinkStaysUnderThePointer adds and removes rows while a visitor is about to click.
func TestALinkStaysUnderThePointer(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Calm()))
	d.Fill()
	d.RequireDone(consoletest.Shop, "PATCH", "/subscriber", `{"max":1}`)
	for n := range 3 {
		d.RequireDone(consoletest.Warehouse, "POST", "/topics/parcels", webtest.EventText(n+2))
	}
	b := open(t, d)
	b.clockwork()
	b.size(1280, "light")
	b.logIn(webtest.RootKey)
	b.visit("subscribers/shop")
	b.await("timers.size > 0")
	rows := `[...document.querySelectorAll("[id^=queue-rows] tbody tr")].map((row) => row.id)`
	before := ask[[]string](b, rows)
	require.Greater(t, len(before), 2)

	b.do(`document.getElementById("` + before[1] + `").scrollIntoView({block: "center"});`)
	b.point("#" + before[1] + " a")
	b.refresh()
	assert.Equal(t, before, ask[[]string](b, rows), "nothing has changed")

	drop := func(row string) {
		d.RequireDone(consoletest.Shop, "DELETE", "/subscriber/batches/"+strings.TrimPrefix(row, "batch-"), "")
		b.refresh()
	}
	drop(before[0])
	assert.Equal(t, before[1:], ask[[]string](b, rows))
	assert.Equal(t, before[1], ask[string](b, underPointer))
	drop(before[1])
	assert.Equal(t, before[1:], ask[[]string](b, rows), "it is under the pointer")
	assert.Equal(t, before[1], ask[string](b, underPointer))
	assert.True(t, ask[bool](b, `document.getElementById("`+before[1]+`").matches(".gone")`))
	b.do("scrollTo(0, 0);")
	b.point("h1")
	b.refresh()
	assert.Equal(t, before[2:], ask[[]string](b, rows))
}

// TestRowsWithoutAnIDAreInTheOrderOfTheAnswer looks at the table of a chart.
func TestRowsWithoutAnIDAreInTheOrderOfTheAnswer(t *testing.T) {
	b := watch(t, consoletest.Calm(), "")
	b.do(`document.querySelector("figure details").open = true;`)
	times := `[...document.querySelectorAll("figure:first-of-type tbody th")].map((at) => at.textContent)`
	before := ask[[]string](b, times)
	b.point("figure:first-of-type tbody td")
	b.refresh()
	assert.Equal(t, before, ask[[]string](b, times))
}
