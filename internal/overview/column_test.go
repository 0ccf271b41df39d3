package overview

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAColumnHasWhatWasSet compares a column with an array.
func TestAColumnHasWhatWasSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const places = 180
		var c Column
		want := make([]float32, places)
		for i := range want {
			want[i] = nan
		}
		place := rapid.IntRange(0, places-1)
		value := rapid.SampledFrom([]float32{0, 0, 0, 7, 65535, 65536, .5, -1, nan})
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			at := place.Draw(t, "place")
			if rapid.Bool().Draw(t, "set") {
				want[at] = value.Draw(t, "value")
				c.Set(at, want[at], places)
			} else {
				want[at] = nan
				c.Forget(at)
			}
			for i := range want {
				if got := c.At(i); got != want[i] && (got == got || want[i] == want[i]) {
					t.Fatalf("at %d: %v, not %v", i, got, want[i])
				}
			}
		}
	})
}
