// Package telemetry makes the program's state visible to its operators: logs and
// Prometheus metrics.
package telemetry
