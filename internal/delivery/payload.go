package delivery

import (
	"bytes"
	"cmp"
	"io"

	"routemaster/internal/wire"
)

// maxKept is the longest JSON, in bytes, that is kept for sending: as much as net/http writes at
// once. It sends a body that it knows to be in memory in one TLS record with the header.
const maxKept = 4 << 10

// payload is events as a JSON array. JSON longer than maxKept is made again while it is sent, so
// that a worker with many threads does not hold the JSON of all its deliveries.
type payload struct {
	events []wire.PackedEvent
	// json is nil if it is not kept.
	json []byte
	// length is the length of the JSON in bytes, for Content-Length: some subscribers require it.
	length int64
	// taken is how many of the given events it accounts for: all before the first that its limit left
	// out.
	taken int
	// indexes are the events' indexes among the events given; nil if no index has changed.
	indexes []int
}

// index is the index among the events given of an event of the payload.
func (p *payload) index(i int) int {
	if p.indexes == nil {
		return i
	}
	return p.indexes[i]
}

// newPayload makes a payload of the first events whose JSON fits into maxBytes bytes, 0 for any,
// and in any case of one event. It takes over the slice. It leaves out events that cannot be read,
// so that the others are delivered, and returns how many it left out, and the error of the first.
// It also writes the JSON to also, which must not fail.
func newPayload(events []wire.PackedEvent, maxBytes int, also io.Writer) (p payload, unreadable int, cause error) {
	var json []byte
	p.json = spaceFor(events)
	p.events, p.length = events[:0], int64(len("[]"))
	for i, event := range events {
		var err error
		json = append(json[:0], '[')
		if len(p.events) > 0 {
			json[0] = ','
		}
		if json, err = wire.AppendEventJSON(json, event); err != nil {
			unreadable, cause = unreadable+1, cmp.Or(cause, err)
			p.noteIndexes()
			p.taken++
			continue
		}
		length := p.length + int64(len(json))
		if len(p.events) == 0 {
			length-- // the bracket is counted
		}
		if maxBytes > 0 && length > int64(maxBytes) && len(p.events) > 0 {
			break
		}
		p.length = length
		p.keep(json)
		p.events = append(p.events, event)
		if p.indexes != nil {
			p.indexes = append(p.indexes, i)
		}
		p.taken++
		_, _ = also.Write(json)
	}
	_, _ = also.Write([]byte("]"))
	if p.json != nil {
		p.json = append(p.json, ']')
	}
	return p, unreadable, cause
}

// spaceFor is room for the JSON of some events; nil if it is too long to be kept. JSON is longer
// than MessagePack.
func spaceFor(events []wire.PackedEvent) []byte {
	packed := 0
	for _, event := range events {
		if packed += len(event); packed > maxKept {
			return nil
		}
	}
	return make([]byte, 0, packed+packed/2)
}

// keep adds to the JSON that is kept, if all of it is to be.
func (p *payload) keep(json []byte) {
	switch {
	case p.length > maxKept:
		p.json = nil
	case p.json != nil:
		p.json = append(p.json, json...)
	}
}

// noteIndexes begins to record indexes, once they differ from the positions in the payload.
func (p *payload) noteIndexes() {
	if p.indexes != nil {
		return
	}
	p.indexes = make([]int, len(p.events), cap(p.events))
	for i := range p.indexes {
		p.indexes[i] = i
	}
}

// reader returns the JSON from its beginning.
func (p payload) reader() io.ReadCloser {
	if p.json != nil {
		return io.NopCloser(bytes.NewReader(p.json))
	}
	return io.NopCloser(&payloadReader{events: p.events})
}

// payloadReader makes the JSON of one event at a time.
type payloadReader struct {
	events []wire.PackedEvent
	// next is the index of the next piece: an event with the bracket or comma before it, or the end.
	next int
	// rest is the part of piece that has not been read yet.
	rest, piece []byte
}

// Read implements [io.Reader]. It fills the buffer unless the JSON ends before.
func (r *payloadReader) Read(buffer []byte) (n int, err error) {
	for n < len(buffer) {
		if len(r.rest) == 0 {
			if r.next > len(r.events) {
				return n, io.EOF
			}
			if err := r.make(); err != nil {
				return n, err
			}
		}
		copied := copy(buffer[n:], r.rest)
		r.rest = r.rest[copied:]
		n += copied
	}
	return n, nil
}

func (r *payloadReader) make() (err error) {
	r.piece = r.piece[:0]
	switch {
	case r.next == 0:
		r.piece = append(r.piece, '[')
	case r.next < len(r.events):
		r.piece = append(r.piece, ',')
	}
	if r.next < len(r.events) {
		r.piece, err = wire.AppendEventJSON(r.piece, r.events[r.next])
	} else {
		r.piece = append(r.piece, ']')
	}
	r.rest = r.piece
	r.next++
	return err
}
