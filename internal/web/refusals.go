package web

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// refusalMaxAge is how long credentials that Redis did not know are refused without asking again.
	refusalMaxAge = 500 * time.Millisecond
	// maxRefusals bounds the memory for them. At 80 bytes each they take 700 KB at most.
	maxRefusals = 8192
)

// refusals are the digests of credentials that Redis did not know a moment ago.
type refusals struct {
	now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]time.Time
	// changes counts how often all was forgotten.
	changes int
}

func newRefusals(now func() time.Time) *refusals {
	return &refusals{now: now, known: map[[sha256.Size]byte]time.Time{}}
}

// look reports whether credentials were refused a moment ago. If not, refuse notes that they are refused now; it does
// nothing if a token was added meanwhile.
func (r *refusals) look(credentials [sha256.Size]byte) (known bool, refuse func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked, changes := r.now(), r.changes
	refusedAt, ok := r.known[credentials]
	if age := asked.Sub(refusedAt); ok && age >= 0 && age < refusalMaxAge {
		return true, nil
	}
	return false, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.changes != changes {
			return
		}
		if len(r.known) >= maxRefusals {
			clear(r.known) // most have expired; the others cost one look-up more
		}
		r.known[credentials] = asked
	}
}

// forget forgets all, because a token was added.
func (r *refusals) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
	r.changes++
}
