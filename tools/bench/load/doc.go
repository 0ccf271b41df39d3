// Package load is both ends of a benchmark: publishers that send events, and the receiver that
// follows each event to each subscriber. It also makes the load of the baselines, which go to a
// no-op server, to the receiver or to Redis without a bus in between.
package load
