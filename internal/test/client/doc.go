// Package client holds the tests of the Go client that need the bus: the client is a module of its
// own, which must not require the bus, so the tests beside its code do without. This package has no
// code of its own.
package client
