// Package contract holds the end-to-end tests of what clients may rely on, wherever the bus is: all
// run a second time on a Redis Cluster. It has no code of its own.
package contract
