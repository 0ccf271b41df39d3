package server

import (
	"errors"
	"io"
	"sync"
)

const (
	// DefaultBodyBudget is how many bytes all request bodies may take together, unless configured.
	DefaultBodyBudget = 64 << 20
	// reservedShare is the part of the budget, one in so many, that is reserved for first buffers,
	// so that a few large and slow bodies do not keep single events out.
	reservedShare = 4
)

// A buffer starts with firstBuffer bytes and grows by the factor bufferGrowth. Buffers of up to
// 256 KiB are pooled.
const (
	firstBuffer  = 4 << 10
	bufferGrowth = 2
)

// ErrBodyBudget says that the bodies of other requests take all the memory that they may.
var ErrBodyBudget = errors.New("request bodies take all the memory that they may")

// Buffers provides the memory for request bodies, within a budget. A buffer grows with what has
// arrived, whatever Content-Length says: a connection that sends nothing costs almost nothing.
type Buffers struct {
	// budget is the maximum of taken.
	budget int

	mu sync.Mutex
	// taken is the size of all buffers in use, in bytes.
	taken int
	// pools have the released buffers of each size, smallest first.
	pools [7]sync.Pool
}

// NewBuffers makes buffers with a budget in bytes.
func NewBuffers(budget int) *Buffers { return &Buffers{budget: budget} }

// Read reads everything into a buffer, which the caller must give to [Buffers.Release]. The error
// is the reader's, or [ErrBodyBudget].
func (b *Buffers) Read(from io.Reader) (buffer []byte, err error) {
	if buffer, err = b.take(firstBuffer); err != nil {
		return nil, err
	}
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF {
			return buffer, nil
		}
		if err == nil && len(buffer) == cap(buffer) {
			buffer, err = b.grow(buffer)
		}
		if err != nil {
			b.Release(buffer)
			return nil, err
		}
	}
}

// Release takes a buffer back. It must not be used any more.
func (b *Buffers) Release(buffer []byte) {
	size := cap(buffer)
	b.mu.Lock()
	b.taken -= size
	b.mu.Unlock()
	if pool := b.pool(size); pool != nil {
		pool.Put(&buffer)
	}
}

// take returns an empty buffer of a capacity. The error is [ErrBodyBudget].
func (b *Buffers) take(size int) ([]byte, error) {
	limit := b.budget
	if size > firstBuffer {
		limit -= limit / reservedShare
	}
	b.mu.Lock()
	enough := b.taken+size <= limit
	if enough {
		b.taken += size
	}
	b.mu.Unlock()
	if !enough {
		return nil, ErrBodyBudget
	}
	if pool := b.pool(size); pool != nil {
		if pooled, ok := pool.Get().(*[]byte); ok {
			return (*pooled)[:0], nil
		}
	}
	return make([]byte, 0, size), nil
}

// pool returns the pool of the buffers of a size, nil if they are too large to be pooled.
func (b *Buffers) pool(size int) *sync.Pool {
	for i, pooled := 0, firstBuffer; i < len(b.pools); i, pooled = i+1, pooled*bufferGrowth {
		if pooled == size {
			return &b.pools[i]
		}
	}
	return nil
}

// grow moves the content of a buffer to a larger one. On an error it returns the buffer unchanged.
func (b *Buffers) grow(buffer []byte) ([]byte, error) {
	larger, err := b.take(bufferGrowth * cap(buffer))
	if err != nil {
		return buffer, err
	}
	larger = append(larger, buffer...)
	b.Release(buffer)
	return larger, nil
}
