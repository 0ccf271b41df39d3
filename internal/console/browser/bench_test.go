//go:build !race

package browser_test

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/web/webtest"
)

// slowdown throttles the processor to the speed of a phone.
const slowdown = 4

// BenchmarkPaint opens the overview of a bus with 1,000 subscribers, and says after how many ms the
// first and the largest part of it were painted.
func BenchmarkPaint(b *testing.B) {
	tab := open(b, serve(b, consoletest.Showing(consoletest.Many(1000))))
	tab.size(1280, "light")
	tab.logIn(webtest.RootKey)
	call(tab, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: slowdown})
	var first, largest []float64
	for b.Loop() {
		tab.visit("")
		tab.await(`document.querySelectorAll("canvas").length > 2`)
		first = append(first, ask[float64](tab, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		largest = append(largest, ask[float64](tab, `new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime))
			.observe({type: "largest-contentful-paint", buffered: true}))`))
	}
	b.ReportMetric(median(first), "first-ms")
	b.ReportMetric(median(largest), "largest-ms")
}

// BenchmarkMorph refreshes a list of 50 rows that have all changed, and says how many ms the page
// takes from the answer on until it shows it.
func BenchmarkMorph(b *testing.B) {
	for name, rate := range map[string]float64{"as it is": 1, "slowed down": slowdown} {
		b.Run(name, func(b *testing.B) {
			tab := watch(b, consoletest.Many(1000), "subscribers")
			call(tab, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate})
			tab.do(`
				Object.defineProperty(XMLHttpRequest.prototype, "onloadend", {set(show) {
					this.addEventListener("loadend", () => {
						const began = performance.now();
						show();
						window.took = performance.now() - began;
					});
				}});
			`)
			var took []float64
			for b.Loop() {
				tab.desk.Live.Change(func(f *overview.Figures) {
					for i := range f.Subscribers {
						f.Subscribers[i].Queued++
					}
				})
				tab.refresh()
				took = append(took, ask[float64](tab, "took"))
			}
			b.ReportMetric(median(took), "refresh-ms")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
