// Package store changes the bus's data in Redis: topics, clients' tokens, subscribers, batches and
// what becomes of them, one step a script. It makes no retry decision, speaks no HTTP, logs nothing
// and counts nothing. Package inspect has the reads that no publish and no delivery needs.
//
// Package layout has the keys, and lua/ the atomic steps, one script each. A process may die
// between any two round trips, so whatever must not be torn apart is one script. A full Redis
// refuses a script at its first write or not at all, so nothing is half-written; the scripts that
// empty the bus are never refused.
//
// The rules of deliveries are in three places: the arithmetic in bus/delivery.go, what follows from
// an attempt in delivery/policy.go, and what happens to the batch and its lane in
// lua/lib/deliveries.lua and lua/lib/setbacks.lua. scripts.go composes the scripts.
package store
