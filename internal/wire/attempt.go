package wire

import (
	"fmt"
	"time"

	"routemaster/internal/bus"
)

// AttemptRecord is the record of an attempt to deliver events of a batch.
type AttemptRecord struct {
	// At is when it began, to the millisecond.
	At    time.Time
	Batch bus.BatchID
	// Attempt counts the batch's attempts from 1; Events is the number of events sent.
	Attempt, Events int
	Outcome         bus.Outcome
	// Status is the HTTP status of the response, 0 if there was none.
	Status int
	// Error is one of the errors of attempts in bus, or empty. Detail is its text, for operators.
	Error, Detail string
	// Duration is how long the attempt took, to the millisecond.
	Duration time.Duration
	// RetryAt is when the rest of the batch may be sent again; zero if nothing is left.
	RetryAt time.Time
	// Excerpt is the beginning of the answer's body, as it came.
	Excerpt string
	// Public is whether the address dialled was a public unicast one.
	Public bool
	// WebhookID stands for the content that was sent, if it was signed.
	WebhookID string
	// Acknowledged, Retried and Rejected are the numbers of events by their results, if these differ.
	Acknowledged, Retried, Rejected int
	// Replay is the replay that the batch is of, or empty.
	Replay bus.ReplayID
	// Test is whether the event was a test.
	Test bool
}

// attemptField is a field of a record: the key under which it is packed, and its value.
type attemptField struct {
	key   string
	value interface {
		isZero() bool
		appendTo(dst []byte) []byte
		read(u *unpacker) error
	}
}

func (r *AttemptRecord) fields() [18]attemptField {
	return [...]attemptField{
		{"t", instant{&r.At}},
		{"b", text[bus.BatchID]{&r.Batch}},
		{"n", number{&r.Attempt}},
		{"e", number{&r.Events}},
		{"o", text[bus.Outcome]{&r.Outcome}},
		{"s", number{&r.Status}},
		{"x", text[string]{&r.Error}},
		{"d", text[string]{&r.Detail}},
		{"m", millis{&r.Duration}},
		{"r", instant{&r.RetryAt}},
		{"c", text[string]{&r.Excerpt}},
		{"p", flag{&r.Public}},
		{"w", text[string]{&r.WebhookID}},
		{"a", number{&r.Acknowledged}},
		{"l", number{&r.Retried}},
		{"j", number{&r.Rejected}},
		{"y", text[bus.ReplayID]{&r.Replay}},
		{"q", flag{&r.Test}},
	}
}

// PackAttempt packs a record: a MessagePack map without zero values.
func PackAttempt(r AttemptRecord) []byte {
	packed := []byte{0} // for the length
	n := 0
	for _, field := range r.fields() {
		if !field.value.isZero() {
			packed = field.value.appendTo(appendString(packed, field.key))
			n++
		}
	}
	return setLength(packed, 0, mapCodes, n)
}

// UnpackAttempt reads a packed record. It ignores unknown fields, and leaves missing ones zero. It
// fails if the bytes are not a record.
func UnpackAttempt(packed string) (r AttemptRecord, err error) {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	u.read(packed)
	n, err := u.DecodeMapLen()
	if err != nil {
		return r, fmt.Errorf("unpack attempt: %w", err)
	}
	fields := r.fields()
	for range n {
		if err := u.attemptField(fields[:]); err != nil {
			return AttemptRecord{}, fmt.Errorf("unpack attempt: %w", err)
		}
	}
	return r, nil
}

// attemptField reads the next key of a record, and its value into the field of that key.
func (u *unpacker) attemptField(fields []attemptField) error {
	key, err := u.text()
	if err != nil {
		return err
	}
	for _, field := range fields {
		if field.key == key {
			return field.value.read(u)
		}
	}
	return u.skip()
}

// The kinds of values in records.
type (
	text[T ~string] struct{ value *T }
	number          struct{ value *int }
	flag            struct{ value *bool }
	instant         struct{ value *time.Time }     // packed as ms since the epoch
	millis          struct{ value *time.Duration } // packed as ms
)

func (v text[T]) isZero() bool               { return *v.value == "" }
func (v text[T]) appendTo(dst []byte) []byte { return appendString(dst, *v.value) }
func (v text[T]) read(u *unpacker) error {
	read, err := u.text()
	*v.value = T(read)
	return err
}

func (v number) isZero() bool               { return *v.value == 0 }
func (v number) appendTo(dst []byte) []byte { return appendInt(dst, int64(*v.value)) }
func (v number) read(u *unpacker) (err error) {
	*v.value, err = u.DecodeInt()
	return err
}

func (v flag) isZero() bool               { return !*v.value }
func (v flag) appendTo(dst []byte) []byte { return appendBool(dst, *v.value) }
func (v flag) read(u *unpacker) (err error) {
	*v.value, err = u.DecodeBool()
	return err
}

func (v instant) isZero() bool               { return v.value.IsZero() }
func (v instant) appendTo(dst []byte) []byte { return appendInt(dst, v.value.UnixMilli()) }
func (v instant) read(u *unpacker) error {
	ms, err := u.DecodeInt64()
	*v.value = time.UnixMilli(ms)
	return err
}

func (v millis) isZero() bool               { return v.value.Milliseconds() == 0 }
func (v millis) appendTo(dst []byte) []byte { return appendInt(dst, v.value.Milliseconds()) }
func (v millis) read(u *unpacker) error {
	ms, err := u.DecodeInt64()
	*v.value = time.Duration(ms) * time.Millisecond
	return err
}
