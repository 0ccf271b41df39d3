package delivery

import (
	"cmp"
	"io"
	"slices"

	"routemaster/internal/wire"
)

// payload is a batch as a JSON array. The JSON is made while it is sent, so that a worker with many
// threads does not hold that of all its deliveries.
type payload struct {
	events []wire.PackedEvent
	// length is the length of the JSON in bytes, for Content-Length: some subscribers require it.
	length int64
}

// newPayload makes a payload of events, and takes over the slice. It leaves out events that cannot
// be read, so that the others are delivered. It returns how many it left out, and the error of the
// first.
func newPayload(events []wire.PackedEvent) (p payload, unreadable int, cause error) {
	var json []byte
	length := len("[]")
	events = slices.DeleteFunc(events, func(event wire.PackedEvent) bool {
		var err error
		if json, err = wire.AppendEventJSON(json[:0], event); err != nil {
			unreadable, cause = unreadable+1, cmp.Or(cause, err)
			return true
		}
		length += len(json)
		return false
	})
	commas := max(len(events)-1, 0)
	return payload{events, int64(length + commas)}, unreadable, cause
}

// reader returns the JSON from its beginning.
func (p payload) reader() io.ReadCloser { return io.NopCloser(&payloadReader{events: p.events}) }

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
