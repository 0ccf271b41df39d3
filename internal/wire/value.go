package wire

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
)

// maxDepth is the maximum nesting of a publisher's data.
const maxDepth = 100

// valuePacker turns a JSON value into MessagePack: members keep their order, integers are
// integers of 64 bits, other numbers are doubles.
type valuePacker struct {
	json *jsontext.Decoder
	// packed is the value so far.
	packed []byte
	// outerDepth is the number of arrays and objects around the value in the text.
	outerDepth int
	// refusal is the first reason why the value is refused although it is valid JSON. Reading goes
	// on, because a syntax error behind it is reported instead.
	refusal error
	// unquoted is scratch space for a string without its escapes.
	unquoted []byte
}

// pack packs the next value. The error is jsontext's.
func (p *valuePacker) pack() error {
	p.packed, p.outerDepth, p.refusal = p.packed[:0], p.json.StackDepth(), nil
	return p.value()
}

func (p *valuePacker) value() error {
	if p.json.StackDepth()-p.outerDepth > maxDepth {
		p.refuse(fmt.Sprintf("is nested more than %d deep", maxDepth))
		return p.json.SkipValue()
	}
	switch p.json.PeekKind() {
	case '[':
		return p.members(']', arrayCodes, 1)
	case '{':
		return p.members('}', mapCodes, 2)
	}
	text, err := p.json.ReadValue()
	if err != nil {
		return err
	}
	switch text.Kind() {
	case '"':
		p.packed = appendString(p.packed, p.unquote(text))
	case '0':
		p.number(text)
	case 't', 'f':
		p.packed = appendBool(p.packed, text.Kind() == 't')
	case 'n':
		p.packed = appendNil(p.packed)
	}
	return nil
}

// members packs an array or an object, whose members have one or two values each. In
// MessagePack their number precedes them, so it is inserted at the end.
func (p *valuePacker) members(end jsontext.Kind, codes lengthCodes, valuesEach int) error {
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	start, values := len(p.packed), 0
	for ; p.json.PeekKind() != end; values++ {
		if err := p.value(); err != nil {
			return err
		}
	}
	p.packed = insertLength(p.packed, start, codes, values/valuesEach)
	_, err := p.json.ReadToken()
	return err
}

func (p *valuePacker) number(text []byte) {
	if bytes.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(string(text), 64)
		mantissa, _, _ := bytes.Cut(bytes.ToLower(text), []byte("e"))
		if err != nil || f == 0 && bytes.ContainsAny(mantissa, "123456789") {
			p.refuse("has a number beyond double precision; send it as a string")
		}
		p.packed = appendFloat(p.packed, f)
		return
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		p.packed = appendInt(p.packed, n)
		return
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		p.refuse("has an integer beyond 64 bits; send it as a string")
	}
	p.packed = appendUint(p.packed, n)
}

// unquote returns the text of a JSON string, until the next call or the next reading.
func (p *valuePacker) unquote(text jsontext.Value) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	p.unquoted, _ = jsontext.AppendUnquote(p.unquoted[:0], text) // the decoder has checked it
	return p.unquoted
}

func (p *valuePacker) refuse(detail string) {
	if p.refusal == nil {
		p.refusal = bus.Invalidf("", "%s", detail)
	}
}
