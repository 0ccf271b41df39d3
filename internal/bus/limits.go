package bus

import "time"

// MaxOpenedBatches is the most batches that one publish may open, for all subscribers together: storing so many keeps Redis
// from serving others for about a second.
const MaxOpenedBatches = 50_000

// How long an idempotency key is remembered, and how many of one client, where nothing else is set.
const (
	MinIdempotencyTTL     = time.Minute
	DefaultIdempotencyTTL = time.Hour
	MaxIdempotencyTTL     = 24 * time.Hour

	DefaultIdempotencyKeys = 100_000
)
