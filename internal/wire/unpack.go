package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// eventFields are the stored keys of an event, in the order of a delivery, and the JSON that
// precedes each value there.
var eventFields = [...]struct{ stored, delivered string }{
	{"o", `{"topic":`}, {"y", `,"type":`}, {"u", `,"url":`}, {"t", `,"t":`}, {"d", `,"data":`},
}

// ShowEvents returns events as a delivery has them. In place of one that cannot be read stands
// {"unreadable":true}.
func ShowEvents(packed []string) []json.RawMessage {
	shown := make([]json.RawMessage, len(packed))
	for i, event := range packed {
		var err error
		if shown[i], err = AppendEventJSON(nil, PackedEvent(event)); err != nil {
			shown[i] = json.RawMessage(`{"unreadable":true}`)
		}
	}
	return shown
}

// maxShown is how many bytes [ShowFirst] returns, in addition to one event.
const maxShown = 4 << 20

// ShowFirst is [ShowEvents] for as many of the events as fit into an answer, and for one at least.
func ShowFirst(packed []string) []json.RawMessage {
	shown, size := []json.RawMessage{}, 0
	for i := 0; i < len(packed) && size < maxShown; i++ {
		shown = append(shown, ShowEvents(packed[i:i+1])...)
		size += len(shown[i])
	}
	return shown
}

// AppendEventJSON appends an event to dst as a delivery has it:
// {"topic","type","url","t","data"?}. It fails if packed is not an event, and then returns dst
// as it was.
func AppendEventJSON(dst []byte, packed PackedEvent) ([]byte, error) {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	values, err := u.event(packed)
	if err != nil {
		return dst, fmt.Errorf("unpack event: %w", err)
	}
	out := dst
	for i, field := range eventFields {
		value := values[i]
		if len(value) == 0 || field.stored == "d" && value[0] == msgpcode.Nil {
			continue
		}
		u.read(value)
		if out, err = u.appendJSON(append(out, field.delivered...)); err != nil {
			return dst, fmt.Errorf("unpack event: %w", err)
		}
	}
	return append(out, '}'), nil
}

// unpacker reads MessagePack. Unpackers are pooled: making one takes longer than unpacking an
// event.
type unpacker struct {
	packed string
	source strings.Reader
	// depth is the number of arrays and maps around the next value.
	depth int
	*msgpack.Decoder
}

var unpackers = sync.Pool{New: func() any { return &unpacker{Decoder: msgpack.NewDecoder(nil)} }}

// read begins to read some bytes.
func (u *unpacker) read(packed string) {
	u.packed, u.depth = packed, 0
	u.source.Reset(packed)
	u.ResetReader(&u.source)
}

// position is the number of bytes read: the decoder reads none ahead.
func (u *unpacker) position() int { return len(u.packed) - u.source.Len() }

// event finds the packed values of an event, in the order of eventFields. Only data may be
// missing.
func (u *unpacker) event(packed PackedEvent) (values [len(eventFields)]string, err error) {
	u.read(string(packed))
	if n, err := u.DecodeArrayLen(); err != nil || n != 2 {
		return values, fmt.Errorf("not an array of two (%d, %v)", n, err)
	}
	if kind, err := u.DecodeString(); err != nil || kind != "e" {
		return values, fmt.Errorf("not an event but %q (%v)", kind, err)
	}
	n, err := u.DecodeMapLen()
	if err != nil {
		return values, err
	}
	for range n {
		key, err := u.text()
		if err != nil {
			return values, err
		}
		start := u.position()
		if err := u.skip(); err != nil {
			return values, err
		}
		for i, field := range eventFields {
			if field.stored == key {
				values[i] = u.packed[start:u.position()]
			}
		}
	}
	for i, field := range eventFields {
		if len(values[i]) == 0 && field.stored != "d" {
			return values, fmt.Errorf("no %q", field.stored)
		}
	}
	return values, nil
}

// skip passes over a value. The library's own Skip recurses for each level of nesting, and stored
// bytes may nest deeper than any stack allows.
func (u *unpacker) skip() error {
	for left := 1; left > 0; left-- {
		code, err := u.PeekCode()
		if err != nil {
			return err
		}
		members := 0
		switch {
		case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
			members, err = u.DecodeArrayLen()
		case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
			members, err = u.DecodeMapLen()
			members *= 2
		default:
			err = u.Skip()
		}
		if err != nil {
			return err
		}
		left += members
	}
	return nil
}

// text reads a string, or binary, without copying it. Nil is empty.
func (u *unpacker) text() (string, error) {
	n, err := u.DecodeBytesLen()
	if err != nil || n <= 0 {
		return "", err
	}
	start := u.position()
	if n > len(u.packed)-start {
		return "", io.ErrUnexpectedEOF
	}
	_, err = u.source.Seek(int64(n), io.SeekCurrent)
	return u.packed[start : start+n], err
}

// appendJSON appends the next MessagePack value as JSON. Doubles that JSON cannot express
// become null: the Ruby original accepted NaN from publishers.
func (u *unpacker) appendJSON(dst []byte) ([]byte, error) {
	code, err := u.PeekCode()
	if err != nil {
		return dst, err
	}
	switch {
	case code == msgpcode.Nil:
		return append(dst, "null"...), u.DecodeNil()
	case code == msgpcode.True, code == msgpcode.False:
		b, err := u.DecodeBool()
		return strconv.AppendBool(dst, b), err
	case code == msgpcode.Float, code == msgpcode.Double:
		f, err := u.DecodeFloat64()
		return appendJSONFloat(dst, f), err
	case code == msgpcode.Uint64:
		n, err := u.DecodeUint64()
		return strconv.AppendUint(dst, n, 10), err
	case msgpcode.IsFixedNum(code), code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		n, err := u.DecodeInt64()
		return strconv.AppendInt(dst, n, 10), err
	case msgpcode.IsString(code), msgpcode.IsBin(code):
		return u.appendText(dst)
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		n, err := u.DecodeArrayLen()
		if err != nil {
			return dst, err
		}
		return u.appendMembers(dst, n, '[', ']', u.appendJSON)
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		n, err := u.DecodeMapLen()
		if err != nil {
			return dst, err
		}
		return u.appendMembers(dst, n, '{', '}', u.appendPair)
	default:
		return dst, fmt.Errorf("no JSON for MessagePack code %#x", code)
	}
}

// maxUnpackDepth is how deep a stored value may be nested. It is more than this package packs,
// because there are other writers.
const maxUnpackDepth = 1000

func (u *unpacker) appendMembers(dst []byte, n int, open, end byte, member func([]byte) ([]byte, error)) ([]byte, error) {
	if u.depth++; u.depth > maxUnpackDepth {
		return dst, fmt.Errorf("nested more than %d deep", maxUnpackDepth)
	}
	defer func() { u.depth-- }()
	dst = append(dst, open)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = member(dst); err != nil {
			return dst, err
		}
	}
	return append(dst, end), nil
}

func (u *unpacker) appendPair(dst []byte) ([]byte, error) {
	dst, err := u.appendText(dst)
	if err != nil {
		return dst, err
	}
	return u.appendJSON(append(dst, ':'))
}

func (u *unpacker) appendText(dst []byte) ([]byte, error) {
	text, err := u.text()
	// An error says only that the text was not UTF-8, which AppendQuote has repaired.
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst, err
}

// appendJSONFloat appends f so that it reads as a float again: 1.0 stays 1.0.
func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	start := len(dst)
	dst = jsontext.AppendFloat(dst, f, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// maxOriginalData is the maximum size of an event's data in the Ruby original, in bytes, packed.
const maxOriginalData = 64

// gapType is the type of a gap notice's event, which scripts make: it has no topic and no URL.
const gapType = "gap"

// CheckForOriginal returns why the Ruby original cannot read an event, or why this program cannot.
// The original checks events that it reads as strictly as events that it is sent, and its worker
// ends when that fails.
func CheckForOriginal(packed PackedEvent) error {
	if _, err := AppendEventJSON(nil, packed); err != nil {
		return err
	}
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	values, err := u.event(packed)
	if err != nil {
		return err
	}
	for i, field := range eventFields {
		value := values[i]
		switch {
		case len(value) == 0:
		case field.stored == "y" && strings.HasSuffix(value, gapType):
			return errors.New("it tells of a gap, which the original knows nothing of")
		case field.stored == "u" && strings.Contains(value, "?"):
			return errors.New("its URL has a query, which the original refuses")
		case field.stored != "d" || value[0] == msgpcode.Nil:
		case !msgpcode.IsFixedMap(value[0]) && value[0] != msgpcode.Map16 && value[0] != msgpcode.Map32:
			return errors.New("its data is no object, which the original refuses")
		case len(value) > maxOriginalData:
			return fmt.Errorf("its data has more than the %d bytes that the original takes", maxOriginalData)
		}
	}
	return nil
}

// Check returns why this program cannot read an event.
func Check(packed PackedEvent) error {
	_, err := AppendEventJSON(nil, packed)
	return err
}
