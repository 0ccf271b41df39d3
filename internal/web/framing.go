package web

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// watchedConn follows the requests on a connection as they are read, and notices those that a proxy could take for
// others than this server does: with both Transfer-Encoding and Content-Length (RFC 9112, section 6.1), or with a folded header.
// net/http takes them, goes by Transfer-Encoding, drops Content-Length before any handler could see it, and keeps the connection.
type watchedConn struct {
	net.Conn
	framing framing
}

// Read implements [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.framing.feed(b[:n])
	return n, err
}

// CloseWrite lets net/http end a connection so that its last answer arrives.
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

// maxFramingLine is how much of a line is kept, in bytes: enough for those that say how long a body is.
const maxFramingLine = 128

// framing is where in a request a connection is.
type framing struct {
	// ambiguous is set for good by a request that is; nothing behind it is looked at.
	ambiguous atomic.Bool
	part      int
	line      []byte
	// begun, encoded, sized and length are of the head that is read; left is of the body or chunk, in bytes.
	begun, encoded, sized bool
	length, left          int64
}

func (f *framing) feed(b []byte) {
	for len(b) > 0 && !f.ambiguous.Load() {
		if f.part == inBody || f.part == inChunk {
			skipped := min(f.left, int64(len(b)))
			b, f.left = b[skipped:], f.left-skipped
			if f.left == 0 {
				f.part = map[int]int{inBody: inHead, inChunk: inChunkSize}[f.part]
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		piece := b
		if end >= 0 {
			piece = b[:end]
		}
		f.line = append(f.line, piece[:min(len(piece), maxFramingLine-len(f.line))]...)
		if end < 0 {
			return
		}
		b = b[end+1:]
		f.take(strings.TrimSuffix(string(f.line), "\r"))
		f.line = f.line[:0]
	}
}

// take follows a whole line.
func (f *framing) take(line string) {
	switch f.part {
	case inHead:
		f.takeHead(line)
	case inChunkSize:
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseInt(strings.TrimSpace(digits), 16, 62)
		if err != nil || size < 0 {
			f.ambiguous.Store(true)
		}
		if f.part, f.left = inChunk, size+int64(len("\r\n")); size == 0 {
			f.part = inTrailer
		}
	case inTrailer:
		if line == "" {
			f.part = inHead
		}
	}
}

func (f *framing) takeHead(line string) {
	switch {
	case line == "" && !f.begun: // may stand before a request: RFC 9112, section 2.2
	case line == "":
		f.endHead()
	case !f.begun:
		f.begun = true
	case line[0] == ' ' || line[0] == '\t':
		f.ambiguous.Store(true)
	default:
		name, value, _ := strings.Cut(line, ":")
		switch {
		case strings.EqualFold(name, "Transfer-Encoding"):
			f.encoded = true
		case strings.EqualFold(name, "Content-Length"):
			length, err := strconv.ParseInt(strings.TrimSpace(value), 10, 63)
			if err != nil || length < 0 {
				f.ambiguous.Store(true)
			}
			f.sized, f.length = true, length
		}
	}
}

// endHead goes on to the body.
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

// watched gives the requests of a connection what follows them.
func watched(ctx context.Context, conn net.Conn) context.Context {
	if conn, ok := conn.(*watchedConn); ok {
		return context.WithValue(ctx, watchedKey{}, &conn.framing)
	}
	return ctx
}

// refuseAmbiguous refuses a request that is ambiguous, and closes its connection. Over TLS, where what is read cannot be followed,
// the connection is closed after every chunked request of HTTP/1.1.
func refuseAmbiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := r.Context().Value(watchedKey{}).(*framing); ok && f.ambiguous.Load() {
			w.Header().Set("Connection", "close")
			writeProblem(w, problem{
				Status: http.StatusBadRequest, Detail: "must not have both Transfer-Encoding and Content-Length, nor folded headers",
			})
			return
		}
		if r.TLS != nil && r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
