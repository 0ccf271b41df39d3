// Package contract holds the end-to-end tests of the promises to clients, which hold wherever the
// bus has its data: all tests run a second time on a Redis Cluster. It has no code of its own.
package contract
