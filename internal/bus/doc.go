// Package bus holds the vocabulary and the rules of the event bus. It imports
// nothing of ours and does no I/O.
//
// # Glossary
//
//   - An event says that a thing, named by its URL, was created, updated,
//     deleted, or is merely there ("noop").
//   - A topic is a named stream of events. The first client that publishes to
//     it owns it.
//   - A client is whoever holds a [Token]. A client that subscribes to topics is
//     a subscriber; it has one callback for all of its topics.
//   - A batch is a list of events for one subscriber. It is delivered by one
//     POST to the callback.
//   - A job is a unit of work in a queue: "deliver this batch" on [QueueMain],
//     housekeeping on [QueueAux]. A job is in its queue at most once.
//   - A worker, in the data layout, is one thread of a worker process. It has at
//     most one pending job.
//   - A subscriber's line is the order in which its batches take their turn to
//     be delivered.
//
// # Life of a batch
//
//	          full, or taken            delivered, or dropped
//	current ------------------> ready ------------------------> (deleted)
//
// A current batch takes in new events; a subscriber has at most one. It is due
// when it is full, or when the subscriber's timeout has passed since it was
// opened. A due batch that waits for its turn stays current, and goes on filling.
//
// # Life of a job
//
//	           schedule           acquire           ack
//	scheduled ----------> instant --------> pending -----> (deleted)
//	    ^                    ^                 |
//	    |                    '--- scrub -------|  its worker died
//	    '------------------------ nack --------'  try again later, or
//	                                              wait for its turn
package bus
