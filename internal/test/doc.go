// Package test holds the end-to-end and fault tests: whole processes, or the daemons of a whole bus
// in the test's own process, on a Redis of their own. It has no code of its own.
package test
