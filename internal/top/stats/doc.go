// Package stats observes a bus from outside, over its HTTP API and its metrics. A [Reader] takes
// snapshots of its state, with one request for each list. A [Sampler] computes rates from them,
// because the bus shows counts.
package stats
