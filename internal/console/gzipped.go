package console

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

// header begins a gzip body that names no file and no time (RFC 1952).
const header = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// trailer is how long the end of a body is: a checksum and a size.
const trailer = 8

// A part is compressed once and sent often; what is around it, for each body.
var forParts, forBodies = newWriters(6), newWriters(4)

// newWriters makes a pool of writers, since each has some 100 kB.
func newWriters(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, level)
		if err != nil {
			panic(err) // there is such a level
		}
		return w
	}}
}

// commonPart is a part of bodies. It does not change.
type commonPart struct {
	text []byte
	// deflated are blocks that end at a byte, none of which is the last of a body.
	deflated []byte
}

// Accept reports whether a request accepts gzip, and has the header of its response say that it
// gets that. What the request refuses has been removed from its header.
func Accept(h http.Header, r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return false
	}
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	return true
}

// NewPart compresses a text, which nobody may change from then on.
func NewPart(text []byte) commonPart {
	w := forParts.Get().(*flate.Writer)
	defer forParts.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(text) // a buffer takes all
	_ = w.Flush()
	return commonPart{text, bytes.Clone(out.Bytes())}
}

// Text is what was compressed.
func (p commonPart) Text() []byte { return p.text }

// Size is how many bytes of memory the part takes.
func (p commonPart) Size() int { return len(p.text) + len(p.deflated) }

// Body makes a body: the part, between what is before and after it.
func (p commonPart) Body(before, after []byte) []byte {
	w := forBodies.Get().(*flate.Writer)
	defer forBodies.Put(w)
	around := len(before) + len(after)
	out := bytes.NewBuffer(make([]byte, 0, len(header)+around/2+len(p.deflated)+trailer))
	out.WriteString(header)
	w.Reset(out)
	_, _ = w.Write(before) // a buffer takes all
	_ = w.Flush()
	out.Write(p.deflated)
	w.Reset(out)
	_, _ = w.Write(after)
	_ = w.Close()
	sum := crc32.ChecksumIEEE(before)
	sum = crc32.Update(sum, crc32.IEEETable, p.text)
	sum = crc32.Update(sum, crc32.IEEETable, after)
	body := binary.LittleEndian.AppendUint32(out.Bytes(), sum)
	return binary.LittleEndian.AppendUint32(body, uint32(around+len(p.text))) // modulo 2^32, as the format has it
}
