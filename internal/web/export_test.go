package web

import "time"

// SetTailCheck sets how often a live tail checks its reader, until it is restored.
func SetTailCheck(every time.Duration) (restore func()) {
	before := tailCheck
	tailCheck = every
	return func() { tailCheck = before }
}
