// Package test holds the end-to-end and fault tests: of whole processes, or of the daemons of a
// whole bus in the test's own process, on a Redis of their own. A file has one subject:
//
//	delivery, daemons, processes   what a bus does while all is well, its start, its end, its limits
//	redis_outage, killed_worker    outages of our own parts; folder chaos has all of them at once
//	failing_batches, sick_subscribers, idempotency_keys   clients that could harm others
//	metrics_pages, metric_service, exceptions, trace      what is seen from outside
//	readme, examples, receivers    what the pages promise
//
// Package bustest starts the bus that they work on. This package has no code of its own.
package test
