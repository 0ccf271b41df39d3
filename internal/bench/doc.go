// Package bench measures a bus from outside: through its HTTP API, with a receiver of its own.
//
// A figure alone says more about the host than about the bus. So most figures stand beside a
// baseline that is measured in the same run: what the same publishers reach on a handler that does
// nothing, what Redis takes of the same bytes by RPUSH, what the receiver takes of the same POSTs
// without a bus in between. The ratios can be compared across hosts.
//
// The processes are those of a real bus, on loopback (package stack):
//
//	publishers (this process) --> web --> redis-server <-- worker --> receiver
//	                        \--> no-op server
//
// Beside a cluster there are two of these, of which one has a worker at a time (package cluster).
//
// Publishers are raw connections that send the same bytes again and again, with a new number in
// each event's URL, so that the load costs little beside what it measures (package load). By that
// number the receiver follows every event of every publisher to every subscriber: how many events
// are lost, duplicated or out of order is part of each result.
//
// In a closed loop every publisher sends its next request when the last one is answered. In an open
// loop requests are due at fixed times, and latency counts from when a request was due, not from
// when it could be sent: so a stall of the bus counts for all requests that were due meanwhile
// (coordinated omission).
package bench
