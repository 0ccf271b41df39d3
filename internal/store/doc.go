// Package store keeps the bus's data in Redis: topics, clients' tokens, subscribers, batches and
// counters. It makes no retry decision, speaks no HTTP, logs nothing and counts nothing.
//
// keys.go is the key layout and lua/ has the atomic steps, one script each. A process may die
// between any two round trips, so whatever must not be torn apart is one script. A full Redis
// refuses a script at its first write or not at all, so nothing is half-written; the scripts that
// empty the bus are never refused.
package store
