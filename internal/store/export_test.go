package store

import "routemaster/internal/bus"

// FormerBatches lets tests be as late as a request that was held up.
func (s *Store) FormerBatches(token bus.Token) *OldestBatches { return s.formerBatches(token) }
