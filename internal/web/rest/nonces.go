package rest

import (
	"container/heap"
	"sync"
	"time"
)

// maxSeenNonces bounds the memory for nonces that were used, to some 8 MB.
const maxSeenNonces = 1 << 16

// openNonce is a nonce that was made with our root key.
type openNonce struct {
	seal    [sealLen]byte
	madeAt  time.Time
	expired bool
}

// seenNonces has the nonces that were used with valid credentials, with the highest count of each,
// at most max of them. Beyond that the oldest are forgotten. An unknown nonce that is not newer
// than the forgotten ones is refused, since its count is unknown: its client is given a new nonce,
// and tries again by itself.
type seenNonces struct {
	max int

	mu     sync.Mutex
	counts map[[sealLen]byte]uint64
	oldest nonceHeap
	// forgotten is when the newest of the nonces was made that were forgotten before they expired.
	forgotten time.Time
}

func newSeenNonces() *seenNonces {
	return &seenNonces{max: maxSeenNonces, counts: map[[sealLen]byte]uint64{}}
}

// count notes the use of a nonce, and reports whether the count has grown since its last use. Some
// clients begin at 0.
// Nonces made before the time expired are forgotten.
func (s *seenNonces) count(nonce openNonce, count uint64, expired time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.oldest) > 0 && s.oldest[0].madeAt.Before(expired) {
		s.forgetOldest()
	}
	before, seen := s.counts[nonce.seal]
	if seen && count <= before || !seen && !nonce.madeAt.After(s.forgotten) {
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

// forgetOldest forgets the oldest nonce, and returns when it was made. The caller holds the lock.
func (s *seenNonces) forgetOldest() time.Time {
	nonce := heap.Pop(&s.oldest).(openNonce)
	delete(s.counts, nonce.seal)
	return nonce.madeAt
}

// nonceHeap is a [heap.Interface] with the oldest nonce first.
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
