package view

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/overview"
)

func TestMeans(t *testing.T) {
	nan := float32(math.NaN())
	for name, test := range map[string]struct {
		succeeded, took, waited []float32
		means                   Means
	}{
		"of all batches":            {[]float32{1, 3}, []float32{100, 236}, []float32{400, 1664}, Means{"84ms", "0.6s"}},
		"without what is unknown":   {[]float32{2, 50, nan, 50}, []float32{168, nan, 5000, 1}, []float32{1032, 1, 1, nan}, Means{"84ms", "0.6s"}},
		"seconds, minutes":          {[]float32{1}, []float32{1250}, []float32{120_000}, Means{"1.2s", "2m01s"}},
		"no batch was acknowledged": {[]float32{0, 0}, []float32{0, 0}, []float32{0, 0}, Means{}},
		"nothing is known":          {nil, nil, nil, Means{}},
	} {
		values := map[overview.Figure][]float32{}
		for f, some := range map[overview.Figure][]float32{
			overview.Succeeded: test.succeeded, overview.Took: test.took, overview.Waited: test.waited,
		} {
			values[f] = append(slices.Repeat([]float32{nan}, overview.Fast.Points-len(some)), some...)
		}
		tracks := func(overview.Subject, overview.Range) (overview.Track, bool) {
			return overview.TrackOf(time.Time{}, overview.Fast, values), true
		}
		assert.Equal(t, test.means, *MeansOf(overview.Subject{Subscriber: "shop"}, tracks), name)
	}
	none := func(overview.Subject, overview.Range) (overview.Track, bool) { return overview.Track{}, false }
	assert.Empty(t, *MeansOf(overview.Subject{Subscriber: "shop"}, none))
}
