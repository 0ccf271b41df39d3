// Package jobs is the vocabulary and the rules of jobs: work that exactly one service has to do,
// and report on. It is pure. The rooms below it are: jobstore, the jobs in Redis and every step
// that changes them; runner, which hands a job to its service; schedule, when the jobs of a type
// with a schedule are due.
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
package jobs
