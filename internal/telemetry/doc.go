// Package telemetry makes the bus's state visible to its operators.
//
// The other packages report to a [Recorder] what happens, in the bus's words. It feeds both the
// Prometheus metrics of its process and the counters of the whole bus, which are kept in Redis.
//
// The rooms beside it hold one way out each: metrics serves Prometheus, metricservice sends what
// waits in the bus to Datadog or to the log, exceptions reports errors and panics, logs makes the
// logger, and tracing makes spans. Nobody waits for the services behind them.
package telemetry
