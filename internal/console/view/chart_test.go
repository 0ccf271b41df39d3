package view

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/overview"
)

func TestFiguresOfAChartsTableAreText(t *testing.T) {
	tracks := func(_ overview.Subject, over overview.Range) (overview.Track, bool) {
		values := slices.Repeat([]float32{1. / 128}, over.Points)
		return overview.TrackOf(time.Time{}, over, map[overview.Figure][]float32{overview.Busy: values}), true
	}
	rows := string(NewChart("busy", "", overview.Subject{}, tracks, Busy).Rows)
	assert.Contains(t, rows, `<td class="number">&lt;1%</td>`)
}
