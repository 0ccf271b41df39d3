// Package telemetry makes the bus's state visible to its operators: logs, Prometheus metrics, the counters and
// gauges that go to a metric service, reports of exceptions, and traces. Nobody waits for the services behind them.
//
// The other packages tell a [Recorder] what happens, in the bus's words. It feeds both the Prometheus metrics
// of its process and the counters of the whole bus, which are kept in Redis; no metric has its name outside
// of this package. A [Monitor] sends counters and gauges to the metric service.
package telemetry
