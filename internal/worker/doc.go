// Package worker runs jobs: main threads that deliver batches, one aux thread for housekeeping, the
// scheduler, the tickers that enqueue housekeeping, and the heartbeat.
//
// All are blocking loops that end when their context does; [Worker.Run] is their group. It stops them
// in this order:
//
//  1. tickers, scheduler and idle threads stop at once; a busy thread finishes and settles its job,
//     and takes no other;
//  2. the heartbeat stops when no thread is left, so that none is taken for dead before it has settled;
//  3. each thread's entry is removed from Redis, and with it, should Redis have been away, goes
//     what it has pending back to the queue.
package worker
