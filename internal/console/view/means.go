package view

import (
	"time"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// Means are the means of the batches that a subscriber has acknowledged in the last 15 min, in
// words; empty if there were none, or if they are unknown. Their deviation would need another
// counter.
type Means struct {
	// Delivery is the time that their deliveries took, Age their age when those ended.
	Delivery, Age string
}

// MeansOf makes the means of a subscriber.
func MeansOf(of overview.Subject, tracks overview.Tracks) *Means {
	track, _ := tracks(of, overview.Fast)
	succeeded, took, waited := track.Values(overview.Succeeded), track.Values(overview.Took), track.Values(overview.Waited)
	var batches, delivery, age float64
	for i, n := range succeeded {
		if both := took[i] + waited[i]; n == n && both == both { // not NaN
			batches, delivery, age = batches+float64(n), delivery+float64(took[i]), age+float64(both)
		}
	}
	if batches == 0 {
		return &Means{}
	}
	return &Means{brief(delivery / batches / 1000), format.Age(new(age / batches / 1000))}
}

// brief writes seconds, in ms if they are less than one.
func brief(seconds float64) string {
	if d := time.Duration(seconds * float64(time.Second)).Round(time.Millisecond); d < time.Second {
		return format.Brief(d)
	}
	return format.Age(&seconds)
}
