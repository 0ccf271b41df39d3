//go:build !unix

package app

// openFileLimit is 0 where there is no such limit.
func openFileLimit() int { return 0 }
