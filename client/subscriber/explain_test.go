package subscriber_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/client/subscriber"
)

func TestAStatusSaysWhyNothingIsDelivered(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	in := func(seconds int) subscriber.Time {
		return subscriber.Time{Time: now.Add(time.Duration(seconds) * time.Second)}
	}
	for want, status := range map[string]subscriber.Status{
		"":                                 {PausedUntil: in(0), NextDeliveryAt: in(9)},
		"paused until somebody resumes it": {PausedUntil: subscriber.Time{Time: now.AddDate(8000, 0, 0)}},
		"paused until 2026-05-04 12:00:01 +00:00":                                    {PausedUntil: in(1), ThrottledUntil: in(2)},
		"throttled until 2026-05-04 12:00:02 +00:00, because deliveries have failed": {ThrottledUntil: in(2), PacedUntil: in(1)},
		"waiting until 2026-05-04 12:00:03 +00:00, to keep to its pace":              {ThrottledUntil: in(2), PacedUntil: in(3)},
		"the next batch is due at 2026-05-04 12:00:04 +00:00":                        {Queued: 1, NextDeliveryAt: in(4)},
		"a batch that failed holds up those behind it in its lane, in strict order; the next batch is due at 2026-05-04 12:00:04 +00:00": {
			Queued: 2, NextDeliveryAt: in(4), Blocked: 1,
		},
		"batches that failed hold up those behind them in 3 lanes, in strict order": {Queued: 9, NextDeliveryAt: in(0), Blocked: 3},
	} {
		assert.Equal(t, want, status.Explain(now))
	}
}
