// Package store is the only package that knows Redis. It keeps to data: it makes
// no retry decision, speaks no HTTP, logs nothing and counts nothing.
//
// keys.go is the whole key layout, codec.go the bytes behind it, and lua/ the atomic steps,
// one script each: a process may die between any two round trips, so whatever must not
// be torn apart is one script. A Redis that is full refuses a script at
// its first write or not at all, so nothing is half-written; what empties the bus is never refused.
package store
