// Package engine keeps the labels of machines in Redis and moves them.
//
// A [Store] has the definitions and labels of a partition, and every step that changes them, each
// one script; a [Bus] has all partitions'. A [Runner] does the due work of a label that a worker
// has taken: an [Evaluator] decides on its gate, or the Runner calls the webhook of its action. A
// [Client] is the machines as a client of the bus: it consumes events and publishes moves.
package engine
