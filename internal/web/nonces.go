package web

import (
	"container/heap"
	"sync"
	"time"
)

// maxSeenNonces bounds the memory for nonces that were used: some 8 MB.
const maxSeenNonces = 1 << 16

// openNonce is a nonce that was made with our root key.
type openNonce struct {
	seal    [sealLen]byte
	madeAt  time.Time
	expired bool
}

// seenNonces are the nonces that were used with valid credentials, with the highest count of each. They are at most
// max: the oldest are forgotten, and from then on whatever is not newer than those and not here is refused. A client
// that holds such a nonce is given another, and tries again by itself.
type seenNonces struct {
	max int

	mu     sync.Mutex
	counts map[[sealLen]byte]uint64
	oldest nonceHeap
	// forgotten is when the newest nonce was made of those forgotten before they expired.
	forgotten time.Time
}

func newSeenNonces() *seenNonces {
	return &seenNonces{max: maxSeenNonces, counts: map[[sealLen]byte]uint64{}}
}

// count notes the use of a nonce, and reports whether the count has grown since its last use. What was made before
// expired is forgotten.
func (s *seenNonces) count(nonce openNonce, count uint64, expired time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.oldest) > 0 && s.oldest[0].madeAt.Before(expired) {
		s.forgetOldest()
	}
	before, seen := s.counts[nonce.seal]
	if count <= before || !seen && !nonce.madeAt.After(s.forgotten) {
		return false
	}
	s.counts[nonce.seal] = count
	if !seen {
		heap.Push(&s.oldest, nonce)
	}
	if len(s.oldest) > s.max {
		s.forgotten = s.forgetOldest()
	}
	return true
}

// forgetOldest forgets a nonce, and returns when it was made. The caller holds the lock.
func (s *seenNonces) forgetOldest() time.Time {
	nonce := heap.Pop(&s.oldest).(openNonce)
	delete(s.counts, nonce.seal)
	return nonce.madeAt
}

// nonceHeap has the oldest nonce first.
type nonceHeap []openNonce

func (h nonceHeap) Len() int           { return len(h) }
func (h nonceHeap) Less(i, j int) bool { return h[i].madeAt.Before(h[j].madeAt) }
func (h nonceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nonceHeap) Push(nonce any)    { *h = append(*h, nonce.(openNonce)) }
func (h *nonceHeap) Pop() any {
	last := len(*h) - 1
	nonce := (*h)[last]
	*h = (*h)[:last]
	return nonce
}
