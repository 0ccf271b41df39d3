//go:build !race

package rdbtest

// RaceDetector is whether the tests run with the race detector, which slows them down about
// tenfold. See [Fewer] and [Each].
const RaceDetector = false
