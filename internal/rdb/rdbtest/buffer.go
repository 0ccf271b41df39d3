package rdbtest

import (
	"bytes"
	"log/slog"
	"sync"

	"routemaster/internal/rdb"
)

// Buffer is an output, of a log or a program, that may be read while several goroutines write it.
// Its zero value is ready.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all text written since the last Reset.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reset drops the text written so far.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// LogTo has a client log to the buffer.
func (b *Buffer) LogTo(o *rdb.Options) { o.Log = slog.New(slog.NewTextHandler(b, nil)) }
