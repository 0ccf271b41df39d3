package web

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// bodyBudget is how many bytes the buffers of all requests' bodies may take together. Its last
// quarter is for first buffers only, so that a few large and slow bodies do not keep single events out.
const (
	bodyBudget     = 64 << 20
	firstBodyShare = 4
)

// Buffers grow by bufferGrowth, from firstBuffer. Those of the first sizes, up to 256 KiB, are used again.
const (
	firstBuffer  = 4 << 10
	bufferGrowth = 2
)

// errNoBudget says that bodies under way take all the memory that they may.
var errNoBudget = errors.New("the bodies under way take all the memory that they may")

// buffers hands out the memory for bodies. A buffer grows with what has arrived, whatever a Content-Length promises: a
// connection that sends nothing costs next to nothing.
type buffers struct {
	// budget is the most that taken may be.
	budget int

	mu sync.Mutex
	// taken is the size of all buffers that are in use.
	taken int
	// pools have the buffers of each size, in the order of sizes.
	pools [7]sync.Pool
}

// take returns an empty buffer of a capacity. The error is errNoBudget.
func (b *buffers) take(size int) ([]byte, error) {
	limit := b.budget
	if size > firstBuffer {
		limit -= limit / firstBodyShare
	}
	b.mu.Lock()
	enough := b.taken+size <= limit
	if enough {
		b.taken += size
	}
	b.mu.Unlock()
	if !enough {
		return nil, errNoBudget
	}
	if pool := b.pool(size); pool != nil {
		if pooled, ok := pool.Get().(*[]byte); ok {
			return (*pooled)[:0], nil
		}
	}
	return make([]byte, 0, size), nil
}

// give takes a buffer back.
func (b *buffers) give(buffer []byte) {
	size := cap(buffer)
	b.mu.Lock()
	b.taken -= size
	b.mu.Unlock()
	if pool := b.pool(size); pool != nil {
		pool.Put(&buffer)
	}
}

// pool has the buffers of a size, nil if they are too large to be kept.
func (b *buffers) pool(size int) *sync.Pool {
	for i, pooled := 0, firstBuffer; i < len(b.pools); i, pooled = i+1, pooled*bufferGrowth {
		if pooled == size {
			return &b.pools[i]
		}
	}
	return nil
}

// read reads all there is into a buffer that is to be given back. The error is the reader's, or errNoBudget.
func (b *buffers) read(from io.Reader) (buffer []byte, err error) {
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
			b.give(buffer)
			return nil, err
		}
	}
}

// grow moves what is in a buffer to a larger one. On an error it returns the buffer as it was.
func (b *buffers) grow(buffer []byte) ([]byte, error) {
	larger, err := b.take(bufferGrowth * cap(buffer))
	if err != nil {
		return buffer, err
	}
	larger = append(larger, buffer...)
	b.give(buffer)
	return larger, nil
}

// refuseBody says that a body was not read, and has the connection closed: to read the rest would take as long as to
// answer the next one.
func refuseBody(w http.ResponseWriter) error {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", retryAfter)
	return &problem{
		Status: http.StatusServiceUnavailable,
		Detail: "the bodies of other requests take all the memory that they may; nothing of this request was stored: send it again later",
	}
}
