// Package wire translates between the bytes that Redis stores, which are MessagePack, and events,
// jobs, counters and JSON. It is pure: it reads no clock and knows no connection.
//
// The bytes are those of the founding layout. What the Ruby original and other writers store is
// read too, even if this package would write it differently.
package wire
