package rest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// watchedConn parses the framing of the requests on a connection as they are read, and notices
// requests that a proxy could frame differently (request smuggling): with both Transfer-Encoding
// and Content-Length (RFC 9112, section 6.1), or with a folded header. net/http accepts them: it
// goes by Transfer-Encoding, removes Content-Length before a handler could see it, and keeps the
// connection. A watchedConn also drops the empty lines before a request, which net/http takes after
// a POST only.
type watchedConn struct {
	net.Conn
	framing framing
}

// Read implements [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		kept := c.framing.feed(b[:n])
		if kept > 0 || n == 0 || err != nil {
			return kept, err
		}
	}
}

// CloseWrite lets net/http half-close a connection, so that its last response arrives.
func (c *watchedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// The parts of a request.
const (
	inHead = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
)

// maxFramingLine is how many bytes of a line are kept: enough for the headers that frame a body.
const maxFramingLine = 128

// framing is the state of parsing a connection's requests.
type framing struct {
	// ambiguous is set by the first ambiguous request, and stays set. Nothing after it is parsed.
	ambiguous atomic.Bool
	part      int
	line      []byte
	// begun, encoded, sized and length describe the head that is being read; left is how many bytes
	// of the body or chunk are still to come.
	begun, encoded, sized bool
	length, left          int64
}

// feed parses the next bytes of a connection, and drops the empty lines before requests from them
// (RFC 9112, section 2.2). It returns how many bytes are kept, at the beginning of b.
func (f *framing) feed(b []byte) (kept int) {
	for next := 0; next < len(b); {
		if f.isBetween() && (b[next] == '\r' || b[next] == '\n') {
			next++
			continue
		}
		parsed := f.parse(b[next:])
		if kept < next {
			copy(b[kept:], b[next:next+parsed])
		}
		kept, next = kept+parsed, next+parsed
	}
	return kept
}

// isBetween reports whether the next byte is the first of a request, or of an empty line before it.
func (f *framing) isBetween() bool {
	return f.part == inHead && !f.begun && len(f.line) == 0 && !f.ambiguous.Load()
}

// parse parses a line, a part of one or of a body, and returns how many bytes that took.
func (f *framing) parse(b []byte) int {
	switch {
	case f.ambiguous.Load():
		return len(b)
	case f.part == inBody || f.part == inChunk:
		skipped := min(f.left, int64(len(b)))
		f.left -= skipped
		switch {
		case f.left > 0:
		case f.part == inBody:
			f.part = inHead
		default:
			f.part = inChunkSize
		}
		return int(skipped)
	}
	end := bytes.IndexByte(b, '\n')
	piece := b
	if end >= 0 {
		piece = b[:end]
	}
	piece = piece[:min(len(piece), maxFramingLine-len(f.line))]
	if end < 0 {
		f.line = append(f.line, piece...)
		return len(b)
	}
	if len(f.line) > 0 { // the line has come in pieces
		f.line = append(f.line, piece...)
		piece = f.line
	}
	f.take(bytes.TrimSuffix(piece, []byte("\r")))
	f.line = f.line[:0]
	return end + 1
}

// take parses a complete line.
func (f *framing) take(line []byte) {
	switch f.part {
	case inHead:
		f.takeHead(line)
	case inChunkSize:
		digits, _, _ := strings.Cut(string(line), ";")
		size, err := strconv.ParseInt(strings.TrimSpace(digits), 16, 62)
		if err != nil || size < 0 {
			f.ambiguous.Store(true)
		}
		if f.part, f.left = inChunk, size+int64(len("\r\n")); size == 0 {
			f.part = inTrailer
		}
	case inTrailer:
		if len(line) == 0 {
			f.part = inHead
		}
	}
}

// The headers that frame a body.
var transferEncoding, contentLength = []byte("Transfer-Encoding"), []byte("Content-Length")

func (f *framing) takeHead(line []byte) {
	switch {
	case len(line) == 0:
		f.endHead()
	case !f.begun:
		f.begun = true
	case line[0] == ' ' || line[0] == '\t':
		f.ambiguous.Store(true)
	default:
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, transferEncoding):
			f.encoded = true
		case bytes.EqualFold(name, contentLength):
			length, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 63)
			if err != nil || length < 0 {
				f.ambiguous.Store(true)
			}
			f.sized, f.length = true, length
		}
	}
}

// endHead decides what follows the head.
func (f *framing) endHead() {
	switch {
	case f.encoded && f.sized:
		f.ambiguous.Store(true)
	case f.encoded:
		f.part = inChunkSize
	case f.length > 0:
		f.part, f.left = inBody, f.length
	}
	f.begun, f.encoded, f.sized, f.length = false, false, false, 0
}

type watchedKey struct{}

// watched makes the framing of a connection known to its requests.
func watched(ctx context.Context, conn net.Conn) context.Context {
	switch conn := conn.(type) {
	case *watchedConn:
		return context.WithValue(ctx, watchedKey{}, &conn.framing)
	case *watchedTLSConn:
		return context.WithValue(ctx, watchedKey{}, &conn.framing)
	}
	return ctx
}

// Ambiguous reports whether a request is ambiguous, or follows one that was on its connection.
func Ambiguous(r *http.Request) bool {
	f, ok := r.Context().Value(watchedKey{}).(*framing)
	return ok && f.ambiguous.Load()
}
