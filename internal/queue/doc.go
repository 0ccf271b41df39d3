// Package queue is the durable job queue: entries that are scheduled, instant or pending, each at
// most once, taken by workers that may die at any moment.
//
//	            schedule         acquire          complete
//	scheduled ----------> instant -------> pending ---------> gone
//	    ^                    ^                | |
//	    |                    |     scrub      | |
//	    |                    +----------------+ |
//	    +---------------------------------------+
//	                      retry
//
// An entry is a [bus.Job]. The queue knows nothing of the subject of a kind of job: a [Kind] adds
// Lua functions that the queue's scripts call, so that an entry is taken with its payload, and
// ended with all consequences, in one atomic step.
//
// A lane is a list of entries that belong together, such as the batches of one subscriber: at most
// a number of them are in flight, the others wait for their turn, in order. An entry that leaves
// wakes the next, which goes behind all instant entries: so lanes take turns.
//
// [New] composes the scripts of the libraries of the queue and its kinds, by rdb/compose. The rules
// of deliveries are not here: bus/delivery.go, delivery/policy.go, and
// store/lua/lib/{deliveries,setbacks}.lua have them.
package queue
