// Package telemetry makes what a process does visible to its operators.
//
// A [Metric] is a row of a table. The other packages count in it what happens, with a [Recorder],
// which feeds the Prometheus metrics of its process and the counters of the whole bus, which are
// kept in Redis. A [Registry] serves the metrics. Package vendors sends them, and exceptions, to
// services of others; nothing waits for these.
package telemetry
