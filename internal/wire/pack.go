package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

// PackedEvent is an event as it is stored: MessagePack
// ["e", {"t": ms, "o": topic, "y": type, "u": url, "d": data or nil}], keys in that order.
// It is a string because that is what Redis returns: a worker keeps its deliveries' events uncopied.
type PackedEvent string

// PackEvent packs an event. The error is a [bus.Invalid] when the data is not JSON, has a number
// that does not fit, or takes more than maxData bytes once packed.
func PackEvent(e *bus.Event, maxData int) (PackedEvent, error) {
	p := packers.Get().(*packer)
	defer packers.Put(p)
	out := p.begin(0)
	enc := p.enc
	err := errors.Join(
		enc.EncodeArrayLen(2), enc.EncodeString("e"), enc.EncodeMapLen(5),
		enc.EncodeString("t"), enc.EncodeInt(e.Timestamp),
		enc.EncodeString("o"), enc.EncodeString(string(e.Topic)),
		enc.EncodeString("y"), enc.EncodeString(string(e.Type)),
		enc.EncodeString("u"), enc.EncodeString(e.URL),
		enc.EncodeString("d"),
	)
	if err != nil {
		return "", err
	}
	head := out.Len()
	if len(e.Data) == 0 {
		err = enc.EncodeNil()
	} else if err = p.data(e.Data); err == nil && out.Len()-head > maxData {
		err = bus.Invalidf("", "takes %d bytes as MessagePack; at most %d are allowed", out.Len()-head, maxData)
	}
	if err != nil {
		return "", bus.At("/data", err)
	}
	return PackedEvent(out.String()), nil
}

// packer turns JSON into MessagePack. It is used again and again, since making its parts takes longer than
// to pack an event.
type packer struct {
	enc    *msgpack.Encoder
	source bytes.Reader
	json   *jsontext.Decoder
	// levels are buffers: the first for all, then one for each level of nesting, since MessagePack puts the
	// number of members before them.
	levels []*bytes.Buffer
}

var packers = sync.Pool{New: func() any {
	return &packer{enc: msgpack.NewEncoder(nil), json: new(jsontext.Decoder)}
}}

// begin empties the buffer of a level, and writes to it from now on.
func (p *packer) begin(level int) *bytes.Buffer {
	if level == len(p.levels) {
		p.levels = append(p.levels, new(bytes.Buffer))
	}
	p.levels[level].Reset()
	p.enc.ResetWriter(p.levels[level])
	return p.levels[level]
}

// maxDepth bounds how deep data may be nested.
const maxDepth = 100

// data packs one JSON value: keys in order, integers as integers of 64 bits, other numbers as doubles.
func (p *packer) data(json []byte) error {
	p.source.Reset(json)
	p.json.Reset(&p.source)
	return p.value()
}

func (p *packer) value() error {
	if p.json.StackDepth() > maxDepth {
		return bus.Invalidf("", "is nested more than %d deep", maxDepth)
	}
	token, err := p.json.ReadToken()
	if err != nil {
		return bus.Invalidf("", "must be a JSON value: %v", err)
	}
	switch token.Kind() {
	case 'n':
		return p.enc.EncodeNil()
	case 't', 'f':
		return p.enc.EncodeBool(token.Bool())
	case '"':
		return p.enc.EncodeString(token.String())
	case '0':
		return packNumber(p.enc, token.String())
	case '[':
		return p.members(']', func(values int) error { return p.enc.EncodeArrayLen(values) })
	case '{':
		return p.members('}', func(values int) error { return p.enc.EncodeMapLen(values / 2) })
	default:
		return bus.Invalidf("", "must be one JSON value")
	}
}

// members packs values up to the end of an array or object, behind their header.
func (p *packer) members(end jsontext.Kind, header func(values int) error) error {
	level := p.json.StackDepth()
	members := p.begin(level)
	values := 0
	for ; p.json.PeekKind() != end; values++ {
		if err := p.value(); err != nil {
			return err
		}
	}
	if _, err := p.json.ReadToken(); err != nil {
		return bus.Invalidf("", "must be a JSON value: %v", err)
	}
	p.enc.ResetWriter(p.levels[level-1])
	if err := header(values); err != nil {
		return err
	}
	_, err := p.levels[level-1].Write(members.Bytes())
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
