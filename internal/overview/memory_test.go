package overview

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestATrackEndsWhenItWasAskedFor reads one after the history went on.
func TestATrackEndsWhenItWasAskedFor(t *testing.T) {
	h := NewHistory()
	for step := range Fast.Points {
		h.Add(Fast, slotAt(step, int64(step*step), 0))
	}
	track, _ := h.Track(Subject{}, Fast)
	before := track.Values(Out)
	h.Add(Fast, slotAt(Fast.Points, 1_000_000, 0))
	h.Add(Fast, slotAt(Fast.Points+1, 1_000_001, 0))
	after := track.Values(Out)
	assert.Equal(t, fmt.Sprint([]float32{nan, nan}), fmt.Sprint(after[:2]), "it is forgotten")
	assert.Equal(t, before[2:], after[2:])
	h.Add(Fast, Slot{At: epoch.Add(24 * time.Hour)})
	assert.Len(t, track.Values(Out), Fast.Points)
}

// TestFiguresAreOfTheLastMinute compares a sampler with one that has only the last minute's
// samples.
func TestFiguresAreOfTheLastMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) []string {
			return rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string]).Draw(t, label)
		}
		number := rapid.Int64Range(0, 100)
		var s Sampler
		var samples []Sample
		seconds := 1000
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			seconds += rapid.SampledFrom([]int{2, 2, 2, 10, 40, 70, -5}).Draw(t, "seconds later")
			now := at(float64(seconds))
			for _, name := range some("topics") {
				now = now.topic(name, number.Draw(t, "events"))
			}
			for _, name := range some("subscribers") {
				now = now.subscriber(SubscriberState{
					Name: name, Sent: number.Draw(t, "sent"), Health: int(number.Draw(t, "health")),
					Counts: Counts{number.Draw(t, "succeeded"), number.Draw(t, "failed"), number.Draw(t, "dropped")},
				})
			}
			for _, name := range some("job types") {
				now.JobTypes = append(now.JobTypes, JobTypeState{
					Name: name, Succeeded: number.Draw(t, "done"), Waiting: number.Draw(t, "waiting"), OldestAt: after(-float64(number.Draw(t, "age"))),
				})
			}
			for len(samples) > 0 && !samples[len(samples)-1].At.Before(now.At) { // the clock was set back
				samples = samples[:len(samples)-1]
			}
			samples = append(samples, now)
			for now.At.Sub(samples[0].At) > Lately {
				samples = samples[1:]
			}
			assert.Equal(t, last(samples...), s.Add(now))
		}
	})
}
