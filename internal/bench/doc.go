// Package bench measures a bus from outside: it speaks HTTP to the bus and RESP to Redis, and imports nothing of ours.
//
// A figure alone says more about the machine than about the bus. So every figure stands beside a limit that is
// measured in the same run: what the same publishers reach on a handler that does nothing, what Redis takes of the same
// bytes by RPUSH, what the receiver takes of the same POSTs without a bus in between. The ratios can be compared
// across machines.
//
// The processes are those of a real bus, on loopback:
//
//	publishers (this process) --> web --> redis-server <-- worker --> receiver
//	                        \--> no-op server                        (follows every event)
//
// Publishers are raw connections that send the same bytes again and again, with a new number in each event's URL, so
// that the load costs little beside what it measures. By that number the receiver follows every event of every
// publisher to every subscriber: what is lost, comes twice or comes out of order is part of each result.
//
// In a closed loop every publisher sends its next request when the last one is answered. In an open loop requests are
// due at fixed times, and latency counts from when a request was due, not from when it could at last be sent: so
// a bus that stalls pays for all who would have called meanwhile (coordinated omission).
package bench
