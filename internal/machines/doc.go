// Package machines is the vocabulary and the rules of state machines. It is pure. A machine moves
// labels, which are opaque names of users, orders or whatever else, through its states. A state is
// a gate, which waits for a condition, or an action, which calls a webhook. Clients never set a
// state: they only change a label's metadata, which may open a gate.
//
//	             PATCH, time, interval, entry, event
//	                           |
//	(create) --> [ gate ] -- the condition holds --> [ action ] -- the webhook answers 2xx --> ...
//	                ^                                    |
//	                +-- it does not: the label waits     +-- it fails: tried again, then errored
//
// A *trigger* has the condition of a gate evaluated. A *visit* is a label's stay in one state, from
// a *move* to the next: all attempts of an action in one visit have the same idempotency token. A
// *run* is the moves that one trigger leads to, until the label rests.
//
// The rooms below it are: condition, the language; definition, machines from YAML and their
// pictures; engine, which has labels in Redis and moves them.
package machines
