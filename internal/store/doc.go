// Package store changes the bus's data in Redis: topics, clients' tokens, subscribers and batches,
// one script for each step. It makes no retry decision, speaks no HTTP, logs nothing and counts
// nothing. Package inspect has the reads that neither a publish nor a delivery needs.
//
// Package layout has the keys, and lua/ the atomic steps, one script each. A process may die
// between any two round trips, so changes that must happen together are one script. A full Redis
// refuses a script at its first write or not at all, so nothing is half-written; the scripts that
// empty the bus are never refused.
//
// The rules of deliveries are in three places: bus/delivery.go has the arithmetic,
// delivery/policy.go decides what follows an attempt, and lua/lib/deliveries.lua and
// lua/lib/setbacks.lua change the batch and its lane. scripts.go composes the scripts.
package store
