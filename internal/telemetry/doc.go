// Package telemetry makes what a process does visible to its operators.
//
// A [Metric] is a row of a table. The other packages count in it what happens, with a [Recorder],
// which feeds the Prometheus metrics of its process and the counters of the whole bus, which are
// kept in Redis. A [Registry] serves the metrics. Nobody waits for the services behind the packages
// below: metricservice sends what waits in the bus to Datadog or to the log, exceptions reports
// errors and panics.
package telemetry
