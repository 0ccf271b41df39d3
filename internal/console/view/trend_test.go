package view

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/overview"
)

func TestCourses(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		values []float32
		word   string
		from   int
	}{
		"rising":           {[]float32{0, 0, 1, 0, 10, 20, nan, 40, 50, 60}, rising, 3},
		"falling":          {[]float32{10, 90, 90, 50, 40, 30, 20, 10, 0, 0}, falling, 2},
		"steady":           {[]float32{100, 110, 95, 100, 105, 99, 101, 120, 110, 120}, "", 0},
		"a wave":           {[]float32{1, 9, 1, 9, 1, 9, 1, 9, 1, 9}, "", 8},
		"neither":          {[]float32{0, 50, 100, 50, 0, 50, 100, 50, 0, 50}, "", 0},
		"nothing":          {[]float32{0, 0, 0, 0, 0, 0, 0}, "", 0},
		"known for a step": {[]float32{nan, nan, 7}, "", 0},
	} {
		got, known := courseOf(c.values)
		assert.True(t, known, name)
		assert.Equal(t, c.word, got.word, name)
		if c.word != "" {
			assert.Equal(t, c.from, got.from, name)
		}
	}
	_, known := courseOf([]float32{nan, nan})
	assert.False(t, known)
}

func TestTrendsSayTheValueOfNowAndTheLongestCourse(t *testing.T) {
	end := time.Date(2026, 11, 23, 3, 53, 0, 0, time.UTC)
	climb := func(over overview.Range, n int, low, high float32) overview.Track {
		values := slices.Repeat([]float32{float32(math.NaN())}, over.Points-n)
		for i := range n {
			values = append(values, low+(high-low)*float32(i)/float32(n-1))
		}
		return overview.TrackOf(end, over, map[overview.Figure][]float32{overview.Queued: values})
	}
	fast := climb(overview.Fast, 90, 100_000, 129_620)
	slow := climb(overview.Slow, 42, 0, 129_000)
	tracks := func(has ...overview.Track) overview.Tracks {
		return func(_ overview.Subject, over overview.Range) (overview.Track, bool) {
			for _, track := range has {
				if track.Step == over.Step {
					return track, true
				}
			}
			return overview.Track{}, false
		}
	}
	got, known := trendOf(overview.Subject{}, tracks(fast, slow), Queued)
	assert.True(t, known)
	assert.Equal(t, Trend{Title: "Queued", Value: "129,620", Course: rising, Since: end.Add(-82 * time.Minute), Low: "0", High: "129,620", Over: "6 h"}, got)

	got, known = trendOf(overview.Subject{}, tracks(fast), Queued)
	assert.True(t, known)
	assert.Equal(t, Trend{Title: "Queued", Value: "129,620", Since: got.Since, Low: "100,000", High: "129,620", Over: "15 min"}, got)

	_, known = trendOf(overview.Subject{}, tracks(), Queued)
	assert.False(t, known)
}
