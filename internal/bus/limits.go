package bus

import "time"

// MaxOpenedBatches is the maximum number of batches that one publish may open, for all
// subscribers together: storing so many keeps Redis from serving others for about a second.
const MaxOpenedBatches = 50_000

// Bounds and defaults of how long an idempotency key is remembered, and how many of each client.
const (
	MinIdempotencyTTL     = time.Minute
	DefaultIdempotencyTTL = time.Hour
	MaxIdempotencyTTL     = 24 * time.Hour

	DefaultIdempotencyKeys = 100_000
)
