// Package wire translates between the bytes that Redis stores, which are MessagePack, and events,
// jobs, counters and JSON. It is pure: it reads no clock and knows no connection.
//
// The bytes follow the founding layout. The package also reads the bytes of the Ruby original and
// of other writers, even if it would write them differently.
package wire
