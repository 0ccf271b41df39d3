// Package samples takes samples of a bus from Redis, keeps a history of them there, and serves the
// figures of a bus to all its viewers.
//
//	Collector: one sample, in some 20 round trips: the parts that its [Reader] needs
//	Heartbeat: a process reports that it is alive
//	Recorder:  a worker, every 10 s: a sample, into the rings in Redis
//	Live:      a web process, while the bus is watched: samples every 2 to 3.5 s, and the history
//	Scraper:   each process: a sample for Prometheus
//
// The monitor of package maintenance sends its samples to a metric service.
package samples
