package wire

import (
	"bytes"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
)

// PackedEvent is an event as it is stored: MessagePack ["e", {"t": ms, "o": topic, "y": type,
// "u": url, "d": data or nil}], keys in that order. It is a string because that is what Redis
// returns: a worker keeps its deliveries' events uncopied.
type PackedEvent string

// Limits bound what a publish may contain.
type Limits struct {
	// Events is the maximum number of events of a publish.
	Events int
	// Data is the maximum size of an event's data in bytes, as MessagePack.
	Data int
}

// ParseEvents reads the JSON of a publish, which is an event or an array of events, validates
// the events and packs them, in one pass. ReceivedAt is the timestamp of events that have none,
// in ms since the Unix epoch. The error is a [bus.Invalid], which points at the value at fault
// or says at which line and column the text stops being JSON.
func ParseEvents(text []byte, topic bus.TopicName, receivedAt int64, limits Limits) ([]PackedEvent, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	p.read(text)
	p.topic, p.receivedAt, p.limits = topic, receivedAt, limits
	if err := p.publish(); err != nil {
		if _, invalid := errors.AsType[*bus.Invalid](err); invalid {
			return nil, err
		}
		return nil, SyntaxError(text, err)
	}
	return p.events(), nil
}

// parser reads a publish. Parsers are pooled: making a decoder takes longer than parsing an
// event.
type parser struct {
	valuePacker // packs an event's data; if nothing is packed, the event has no data
	// source holds the text. The decoder reads from a [bytes.Buffer] without copying.
	source     bytes.Buffer
	topic      bus.TopicName
	receivedAt int64
	limits     Limits
	// all is the packed events so far, one after the other; ends is where each ends.
	all  []byte
	ends []int
}

var parsers = sync.Pool{New: func() any { return &parser{valuePacker: valuePacker{json: new(jsontext.Decoder)}} }}

// maxPooled is the maximum size of the buffers that a pooled parser keeps, in bytes.
const maxPooled = 256 << 10

// read begins to read a text.
func (p *parser) read(text []byte) {
	p.source = *bytes.NewBuffer(text)
	p.json.Reset(&p.source)
	p.packed, p.refusal = p.packed[:0], nil
	p.all, p.ends = p.all[:0], p.ends[:0]
}

// release lets go of the text, and gives the parser back.
func (p *parser) release() {
	p.read(nil)
	if cap(p.all) <= maxPooled && cap(p.packed) <= maxPooled {
		parsers.Put(p)
	}
}

// publish reads all of the text.
func (p *parser) publish() error {
	if p.json.PeekKind() != '[' {
		if err := p.event(); err != nil {
			return err
		}
		return ExpectEnd(p.json)
	}
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	for p.json.PeekKind() != ']' {
		if len(p.ends) == p.limits.Events {
			return bus.Invalidf("", "has more than %d events; send them in several requests", p.limits.Events)
		}
		if err := p.event(); err != nil {
			return err
		}
	}
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	if err := ExpectEnd(p.json); err != nil {
		return err
	}
	if len(p.ends) == 0 {
		return bus.Invalidf("", "the array is empty; send 1 to %d events", p.limits.Events)
	}
	return nil
}

// event reads an event and packs it.
func (p *parser) event() error {
	if begin, err := p.json.ReadToken(); err != nil {
		return err
	} else if begin.Kind() != '{' {
		return p.invalid("must be an object")
	}
	p.packed, p.refusal = p.packed[:0], nil
	e := bus.Event{Topic: p.topic, Timestamp: p.receivedAt}
	for p.json.PeekKind() != '}' {
		if err := p.member(&e); err != nil {
			return err
		}
	}
	if _, err := p.json.ReadToken(); err != nil {
		return err
	}
	err := e.Validate()
	if err == nil {
		err = p.checkData()
	}
	if err != nil {
		return bus.At(string(p.json.StackPointer()), err)
	}
	p.all = p.appendEvent(p.all, &e)
	p.ends = append(p.ends, len(p.all))
	return nil
}

// member reads a member of an event.
func (p *parser) member(e *bus.Event) error {
	name, err := p.json.ReadValue()
	if err != nil {
		return err
	}
	switch string(p.unquote(name)) {
	case "type":
		text, err := p.string()
		e.Type = bus.EventType(text)
		return err
	case "url":
		e.URL, err = p.string()
		return err
	case "timestamp":
		return p.timestamp(e)
	case "data":
		return p.data()
	default:
		return p.invalid("is not known here; known are type, url, timestamp, data")
	}
}

// string reads a string.
func (p *parser) string() (string, error) {
	token, err := p.json.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", p.invalid("must be a string")
	}
	return token.String(), nil
}

// timestamp reads an event's timestamp. Existing clients send null instead of leaving it out.
func (p *parser) timestamp(e *bus.Event) error {
	token, err := p.json.ReadToken()
	switch {
	case err != nil:
		return err
	case token.Kind() == 'n':
		return nil
	case token.Kind() != '0':
		return p.invalid("must be an integer")
	}
	ms, ok := parseInteger(token.String())
	if !ok {
		return p.invalid("must be an integer of at most 64 bits")
	}
	e.Timestamp = ms
	return nil
}

// data reads an event's data and packs it. Null means no data.
func (p *parser) data() error {
	if p.json.PeekKind() == 'n' {
		_, err := p.json.ReadToken()
		return err
	}
	return p.pack()
}

// checkData returns a [bus.Invalid] that points at the data of an event, if that is not allowed.
func (p *parser) checkData() error {
	if p.refusal != nil {
		return bus.At("/data", p.refusal)
	}
	if size := len(p.packed); size > p.limits.Data {
		return bus.Invalidf("/data", "takes %d bytes as MessagePack; at most %d are allowed", size, p.limits.Data)
	}
	return nil
}

// appendEvent appends an event, with the data that was packed last.
func (p *parser) appendEvent(dst []byte, e *bus.Event) []byte {
	dst = appendString(appendLength(dst, arrayCodes, 2), "e")
	dst = appendLength(dst, mapCodes, 5)
	dst = appendInt(appendString(dst, "t"), e.Timestamp)
	dst = appendString(appendString(dst, "o"), e.Topic)
	dst = appendString(appendString(dst, "y"), e.Type)
	dst = appendString(appendString(dst, "u"), e.URL)
	dst = appendString(dst, "d")
	if len(p.packed) == 0 {
		return appendNil(dst)
	}
	return append(dst, p.packed...)
}

// events returns the packed events. They share one string.
func (p *parser) events() []PackedEvent {
	all, start := PackedEvent(p.all), 0
	events := make([]PackedEvent, len(p.ends))
	for i, end := range p.ends {
		events[i] = all[start:end]
		start = end
	}
	return events
}

// invalid is an error about the value, or the name, that was read last.
func (p *parser) invalid(detail string) error {
	return &bus.Invalid{Pointer: string(p.json.StackPointer()), Detail: detail}
}
