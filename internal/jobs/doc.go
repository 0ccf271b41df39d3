// Package jobs is the job service: work that exactly one service has to do, and report on.
//
//	         enqueue          take, fetch
//	(client) -------> queued -----------> in progress --> succeeded, failed, expired, cancelled
//	                    ^                   |                (archived)
//	                    |  failed, to be    |
//	                    +-------------------+
//	                       tried again
//
// A job that was accepted by its service is in progress until the service reports on it, or its
// deadline passes, which is a failed attempt. Nothing waits for it meanwhile: no thread, and no
// connection.
//
// [Type] and [Job] are the vocabulary, with the rules of both. A [Store] has the jobs of a
// partition, and every step that changes them, each one script; a [Bus] has all partitions'. A
// [Runner] hands a job that a worker has taken to its service. [SpareTasksOf] returns the
// housekeeping of jobs.
package jobs
