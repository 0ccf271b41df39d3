// Package engine keeps the labels of machines in Redis and moves them.
//
// A [Store] has the definitions and labels of a partition, and every step that changes them, each
// one script; a [Bus] has all partitions'. A [Runner] does what is due for a label that a worker
// has taken: it has an [Evaluator] decide on its gate, or calls the webhook of its action. A
// [Client] is the machines as a client of the bus: it hears events and tells moves.
package engine
