// Package telemetry makes the work of a process visible to its operators.
//
// A [Metric] is a row of a table. The other packages count events in it with a [Recorder], which
// feeds the Prometheus metrics of its process and the counters of the whole bus, which are kept in
// Redis. A [Registry] serves the metrics. Package vendors sends them, and exceptions, to
// third-party services; no caller waits for these.
package telemetry
