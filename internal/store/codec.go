package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"routemaster/internal/bus"
)

// PackedEvent is an event as it is stored: MessagePack
// ["e", {"t": ms, "o": topic, "y": type, "u": url, "d": data or nil}], keys in that order.
type PackedEvent []byte

// PackEvent packs an event. The error is a [bus.Invalid] when the data is not JSON, has a number
// that does not fit, or takes more than maxData bytes once packed.
func PackEvent(e *bus.Event, maxData int) (PackedEvent, error) {
	data, err := packData(e.Data)
	if err != nil {
		return nil, bus.At("/data", err)
	}
	if len(e.Data) > 0 && len(data) > maxData {
		return nil, bus.Invalidf("/data", "takes %d bytes as MessagePack; at most %d are allowed", len(data), maxData)
	}
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	err = errors.Join(
		enc.EncodeArrayLen(2), enc.EncodeString("e"), enc.EncodeMapLen(5),
		enc.EncodeString("t"), enc.EncodeInt(e.Timestamp),
		enc.EncodeString("o"), enc.EncodeString(string(e.Topic)),
		enc.EncodeString("y"), enc.EncodeString(string(e.Type)),
		enc.EncodeString("u"), enc.EncodeString(e.URL),
		enc.EncodeString("d"),
	)
	buf.Write(data)
	return buf.Bytes(), err
}

// packData turns one JSON value into MessagePack: keys in order, integers as integers of 64 bits,
// other numbers as doubles. No value is nil.
func packData(json []byte) ([]byte, error) {
	if len(json) == 0 {
		return []byte{msgpcode.Nil}, nil
	}
	var buf bytes.Buffer
	if err := packValue(msgpack.NewEncoder(&buf), jsontext.NewDecoder(bytes.NewReader(json))); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// maxDepth bounds how deep data may be nested.
const maxDepth = 100

func packValue(enc *msgpack.Encoder, dec *jsontext.Decoder) error {
	if dec.StackDepth() > maxDepth {
		return bus.Invalidf("", "is nested more than %d deep", maxDepth)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return bus.Invalidf("", "must be a JSON value: %v", err)
	}
	switch token.Kind() {
	case 'n':
		return enc.EncodeNil()
	case 't', 'f':
		return enc.EncodeBool(token.Bool())
	case '"':
		return enc.EncodeString(token.String())
	case '0':
		return packNumber(enc, token.String())
	case '[':
		return packMembers(enc, dec, ']', enc.EncodeArrayLen)
	case '{':
		return packMembers(enc, dec, '}', func(values int) error { return enc.EncodeMapLen(values / 2) })
	default:
		return bus.Invalidf("", "must be one JSON value")
	}
}

// packMembers packs values up to the end of an array or object. MessagePack puts their number first,
// so they are packed aside.
func packMembers(enc *msgpack.Encoder, dec *jsontext.Decoder, end jsontext.Kind, header func(values int) error) error {
	var members bytes.Buffer
	aside := msgpack.NewEncoder(&members)
	values := 0
	for ; dec.PeekKind() != end; values++ {
		if err := packValue(aside, dec); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return bus.Invalidf("", "must be a JSON value: %v", err)
	}
	if err := header(values); err != nil {
		return err
	}
	_, err := enc.Writer().Write(members.Bytes())
	return err
}

func packNumber(enc *msgpack.Encoder, text string) error {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
			return bus.Invalidf("", "has a number beyond double precision; send it as a string")
		}
		return enc.EncodeFloat64(f)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return enc.EncodeInt(n)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return bus.Invalidf("", "has an integer beyond 64 bits; send it as a string")
	}
	return enc.EncodeUint(n)
}

// eventFields are the stored keys of an event, in the order in which a delivery has them, and
// their names there.
var eventFields = [...]struct{ stored, delivered string }{
	{"o", "topic"}, {"y", "type"}, {"u", "url"}, {"t", "t"}, {"d", "data"},
}

// AppendEventJSON appends an event to dst as a delivery has it: {"topic","type","url","t","data"?}.
// On an error dst comes back as it was.
func AppendEventJSON(dst []byte, packed PackedEvent) ([]byte, error) {
	values, err := splitEvent(packed)
	if err != nil {
		return dst, fmt.Errorf("unpack event: %w", err)
	}
	json := dst
	for i, field := range eventFields {
		value := values[i]
		if len(value) == 0 || field.stored == "d" && value[0] == msgpcode.Nil {
			continue
		}
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		json = append(json, separator, '"')
		json = append(json, field.delivered...)
		json = append(json, '"', ':')
		if json, err = appendJSON(json, msgpack.NewDecoder(bytes.NewReader(value))); err != nil {
			return dst, fmt.Errorf("unpack event: %w", err)
		}
	}
	return append(json, '}'), nil
}

// splitEvent finds the packed values of an event, in the order of eventFields. Only data may be missing.
func splitEvent(packed PackedEvent) (values [len(eventFields)]msgpack.RawMessage, err error) {
	dec := msgpack.NewDecoder(bytes.NewReader(packed))
	if n, err := dec.DecodeArrayLen(); err != nil || n != 2 {
		return values, fmt.Errorf("not an array of two (%d, %v)", n, err)
	}
	if kind, err := dec.DecodeString(); err != nil || kind != "e" {
		return values, fmt.Errorf("not an event but %q (%v)", kind, err)
	}
	n, err := dec.DecodeMapLen()
	if err != nil {
		return values, err
	}
	for range n {
		key, err := dec.DecodeString()
		if err != nil {
			return values, err
		}
		value, err := dec.DecodeRaw()
		if err != nil {
			return values, err
		}
		for i, field := range eventFields {
			if field.stored == key {
				values[i] = value
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

// appendJSON appends the next MessagePack value as JSON. Doubles that JSON cannot say become null: the
// Ruby original took NaN from publishers.
func appendJSON(dst []byte, dec *msgpack.Decoder) ([]byte, error) {
	code, err := dec.PeekCode()
	if err != nil {
		return dst, err
	}
	switch {
	case code == msgpcode.Nil:
		return append(dst, "null"...), dec.DecodeNil()
	case code == msgpcode.True, code == msgpcode.False:
		b, err := dec.DecodeBool()
		return strconv.AppendBool(dst, b), err
	case code == msgpcode.Float, code == msgpcode.Double:
		f, err := dec.DecodeFloat64()
		return appendFloat(dst, f), err
	case code == msgpcode.Uint64:
		n, err := dec.DecodeUint64()
		return strconv.AppendUint(dst, n, 10), err
	case msgpcode.IsFixedNum(code), code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		n, err := dec.DecodeInt64()
		return strconv.AppendInt(dst, n, 10), err
	case msgpcode.IsString(code), msgpcode.IsBin(code):
		s, err := dec.DecodeString()
		// AppendQuote's error says that s was not UTF-8, and it has mended that.
		dst, _ = jsontext.AppendQuote(dst, s)
		return dst, err
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		n, err := dec.DecodeArrayLen()
		if err != nil {
			return dst, err
		}
		return appendMembers(dst, dec, n, '[', ']', appendJSON)
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		n, err := dec.DecodeMapLen()
		if err != nil {
			return dst, err
		}
		return appendMembers(dst, dec, n, '{', '}', appendPair)
	default:
		return dst, fmt.Errorf("no JSON for MessagePack code %#x", code)
	}
}

func appendMembers(dst []byte, dec *msgpack.Decoder, n int, open, end byte,
	member func([]byte, *msgpack.Decoder) ([]byte, error)) ([]byte, error) {
	dst = append(dst, open)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = member(dst, dec); err != nil {
			return dst, err
		}
	}
	return append(dst, end), nil
}

func appendPair(dst []byte, dec *msgpack.Decoder) ([]byte, error) {
	key, err := dec.DecodeString()
	if err != nil {
		return dst, err
	}
	dst, _ = jsontext.AppendQuote(dst, key)
	return appendJSON(append(dst, ':'), dec)
}

// appendFloat appends f so that it reads as a float again: 1.0 stays 1.0.
func appendFloat(dst []byte, f float64) []byte {
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

// packJob packs a job as MessagePack [name, [args...]].
func packJob(job bus.Job) string {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	_ = errors.Join(enc.EncodeArrayLen(2), enc.EncodeString(string(job.Name)), enc.EncodeArrayLen(len(job.Args)))
	for _, arg := range job.Args {
		_ = enc.EncodeString(arg) // a buffer takes all
	}
	return buf.String()
}

func unpackJob(packed string) (job bus.Job, err error) {
	dec := msgpack.NewDecoder(strings.NewReader(packed))
	if n, err := dec.DecodeArrayLen(); err != nil || n != 2 {
		return job, fmt.Errorf("unpack job: not an array of two (%d, %v)", n, err)
	}
	name, err := dec.DecodeString()
	if err != nil {
		return job, fmt.Errorf("unpack job's name: %w", err)
	}
	job.Name = bus.JobName(name)
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return job, fmt.Errorf("unpack job's arguments: %w", err)
	}
	for range n {
		arg, err := dec.DecodeString()
		if err != nil {
			return job, fmt.Errorf("unpack job's arguments: %w", err)
		}
		job.Args = append(job.Args, arg)
	}
	return job, nil
}
