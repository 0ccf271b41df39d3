// Package worker runs jobs. It has a pool of threads and a scheduler for each queue, tickers, and
// the heartbeat. Only the handlers know the content of the jobs.
//
// All of them are blocking loops that end when their context does. [Worker.Run] starts them, waits
// for them, and stops them in this order:
//
//  1. Tickers, schedulers and idle threads stop at once. A busy thread finishes and completes its
//     job, and takes no other.
//  2. The heartbeat stops when no thread is left. Without it, a busy thread could be taken for
//     dead, and another worker could run its job again.
//  3. Each thread is removed from Redis. A job that it could not complete, because Redis was
//     unavailable, goes back to its queue.
package worker
