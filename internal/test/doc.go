// Package test holds the end-to-end and fault tests: of whole processes, or of the daemons of a
// whole bus in the test's own process, on a Redis of their own. A file has one subject:
//
//	folder contract                promises to clients, wherever the bus has its data
//	daemons, processes             start, end and limits of the daemons
//	redis_outage, killed_worker    outages of our own parts; folder chaos has all of them at once
//	idempotency_keys               clients that could harm others
//	metrics_pages, metric_service, exceptions, trace      monitoring from outside
//	readme, examples, receivers    promises of the pages
//	fetched_client                 the Go client, in a module of another program
//
// Package bustest starts the bus that they work on. This package has no code of its own.
package test
