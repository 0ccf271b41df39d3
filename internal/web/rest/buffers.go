package rest

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

// Errors of [Buffers.Read].
var (
	// ErrBodyBudget says that the bodies of other requests take all the memory that they may.
	ErrBodyBudget = errors.New("request bodies take all the memory that they may")
	// ErrBodyShare says the same of the bodies of other requests of one client.
	ErrBodyShare = errors.New("request bodies of the client take all the memory that they may")
)

// holding is the memory that the bodies of one client take.
type holding struct{ bodies, bytes int }

// Buffers provides the memory for request bodies, within a budget. A buffer grows with the bytes
// that have arrived, whatever Content-Length says: a connection that sends nothing costs almost
// nothing.
type Buffers struct {
	// budget is the maximum of taken.
	budget int

	mu sync.Mutex
	// taken is the size of all buffers in use, in bytes.
	taken int
	// by has the holding of each client with bodies.
	by map[string]*holding
	// pools have the released buffers of each size, smallest first.
	pools [7]sync.Pool
}

// NewBuffers makes buffers with a budget in bytes.
func NewBuffers(budget int) *Buffers { return &Buffers{budget: budget, by: map[string]*holding{}} }

// Read reads a body of a client into a buffer, which the caller must give to [Buffers.Release]. The
// client is any text that stands for it. All its bodies may take a quarter of the budget, but a
// single one as much as any. The error is the reader's, [ErrBodyBudget] or [ErrBodyShare].
func (b *Buffers) Read(client string, from io.Reader) (buffer []byte, err error) {
	if buffer, err = b.take(client, firstBuffer, 1); err != nil {
		return nil, err
	}
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF {
			return buffer, nil
		}
		if err == nil && len(buffer) == cap(buffer) {
			buffer, err = b.grow(client, buffer)
		}
		if err != nil {
			b.Release(client, buffer)
			return nil, err
		}
	}
}

// Release takes back a buffer that was read for a client. It must not be used any more.
func (b *Buffers) Release(client string, buffer []byte) { b.release(client, buffer, 1) }

// release takes a buffer back, and ends so many bodies.
func (b *Buffers) release(client string, buffer []byte, bodies int) {
	size := cap(buffer)
	b.mu.Lock()
	b.taken -= size
	left := b.by[client]
	left.bodies -= bodies
	left.bytes -= size
	if left.bodies == 0 {
		delete(b.by, client)
	}
	b.mu.Unlock()
	if pool := b.pool(size); pool != nil {
		pool.Put(&buffer)
	}
}

// take returns an empty buffer of a capacity, and begins so many bodies. The error is
// [ErrBodyBudget] or [ErrBodyShare].
func (b *Buffers) take(client string, size, bodies int) ([]byte, error) {
	limit := b.budget
	if size > firstBuffer {
		limit -= limit / reservedShare
	}
	if err := b.count(client, size, bodies, limit); err != nil {
		return nil, err
	}
	if pool := b.pool(size); pool != nil {
		if pooled, ok := pool.Get().(*[]byte); ok {
			return (*pooled)[:0], nil
		}
	}
	return make([]byte, 0, size), nil
}

// count counts a client's bodies and bytes, if its share and the limit on all bytes allow them.
func (b *Buffers) count(client string, size, bodies, limit int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.by[client]
	switch {
	case of != nil && of.bodies+bodies > 1 && of.bytes+size > b.budget/clientShare:
		return ErrBodyShare
	case b.taken+size > limit:
		return ErrBodyBudget
	case of == nil:
		of = &holding{}
		b.by[client] = of
	}
	b.taken += size
	of.bodies += bodies
	of.bytes += size
	return nil
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
func (b *Buffers) grow(client string, buffer []byte) ([]byte, error) {
	larger, err := b.take(client, bufferGrowth*cap(buffer), 0)
	if err != nil {
		return buffer, err
	}
	larger = append(larger, buffer...)
	b.release(client, buffer, 0)
	return larger, nil
}
