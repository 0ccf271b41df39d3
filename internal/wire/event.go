package wire

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
)

// PackedEvent is an event as it is stored: MessagePack ["e", {"t": ms, "o": topic, "y": type, "u":
// url, "d": data or nil}], keys in that order. It is a string because Redis returns strings: a
// worker keeps its deliveries' events uncopied.
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
	p.read(string(text)) // once, so that no event needs a string of its own
	p.topic, p.receivedAt, p.limits = topic, receivedAt, limits
	err := p.publish()
	if err == nil {
		return p.events(), nil
	}
	if errors.Is(err, ErrSyntax) {
		err = SyntaxError(text, WhyNotJSON(text))
	}
	return nil, err
}

// parser reads a publish. Parsers are pooled for their buffers.
type parser struct {
	valuePacker // packs an event's data; if nothing is packed, the event has no data
	topic       bus.TopicName
	receivedAt  int64
	limits      Limits
	// inArray is whether the events are in an array.
	inArray bool
	// all is the packed events so far, one after the other; ends is where each ends.
	all  []byte
	ends []int
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// maxPooled is the maximum capacity of each of the buffers that a pooled parser keeps.
const maxPooled = 256 << 10

// read begins to read a text.
func (p *parser) read(text string) {
	p.Scanner, p.inArray = New(text), false
	p.packed, p.refusal = p.packed[:0], nil
	p.all, p.ends = p.all[:0], p.ends[:0]
}

// release lets go of the text, and gives the parser back.
func (p *parser) release() {
	p.read("")
	if max(cap(p.all), cap(p.packed), cap(p.names)) <= maxPooled {
		parsers.Put(p)
	}
}

// publish reads all of the text. The error is scan.ErrSyntax or a [bus.Invalid].
func (p *parser) publish() error {
	read := p.event
	if p.inArray = p.Take('['); p.inArray {
		read = p.eventArray
	}
	if err := read(); err != nil {
		return err
	}
	if !p.AtEnd() {
		if _, _, err := p.Token(); err != nil {
			return err
		}
		return bus.Invalidf("", "there is something after the JSON value; send one value")
	}
	if len(p.ends) == 0 {
		return bus.Invalidf("", "the array is empty; send 1 to %d events", p.limits.Events)
	}
	return nil
}

// eventArray reads the events of an array, to its end.
func (p *parser) eventArray() error {
	var err error
	for more := !p.Take(']'); more; {
		if err = p.event(); err != nil {
			return err
		}
		if len(p.ends) == p.limits.Events && p.Peek() != ']' {
			return bus.Invalidf("", "has more than %d events; send them in several requests", p.limits.Events)
		}
		if more, err = p.More(']'); err != nil {
			return err
		}
	}
	return nil
}

// event reads an event and packs it.
func (p *parser) event() error {
	if kind, _, err := p.Token(); err != nil {
		return err
	} else if kind != '{' {
		return &bus.Invalid{Pointer: p.pointer(), Detail: "must be an object"}
	}
	p.packed, p.refusal = p.packed[:0], nil
	e := bus.Event{Topic: p.topic, Timestamp: p.receivedAt}
	var seen [len(eventMembers)]bool
	var err error
	for more := !p.Take('}'); more; {
		if err = p.member(&e, &seen); err != nil {
			return err
		}
		if more, err = p.More('}'); err != nil {
			return err
		}
	}
	if err = e.Validate(); err == nil {
		err = p.checkData()
	}
	if err != nil {
		return bus.At(p.pointer(), err)
	}
	p.all = p.appendEvent(p.all, &e)
	p.ends = append(p.ends, len(p.all))
	return nil
}

// eventMembers are the names that an event's members may have.
var eventMembers = [...]string{"type", "url", "timestamp", "data"}

// member reads a member of an event, and notes that it was seen: none may come twice.
func (p *parser) member(e *bus.Event, seen *[len(eventMembers)]bool) error {
	name, err := p.Text()
	if err != nil {
		return err
	}
	at := slices.Index(eventMembers[:], name)
	if at < 0 {
		return p.invalid(name, "is not known here; known are type, url, timestamp, data")
	}
	if seen[at] || !p.Take(':') {
		return ErrSyntax
	}
	seen[at] = true
	switch eventMembers[at] {
	case "type":
		text, err := p.textOf("type")
		e.Type = bus.EventType(text)
		return err
	case "url":
		e.URL, err = p.textOf("url")
		return err
	case "timestamp":
		return p.timestamp(e)
	default:
		return p.data()
	}
}

// textOf reads the value of a member that is a string.
func (p *parser) textOf(member string) (string, error) {
	kind, text, err := p.Token()
	if err == nil && kind != '"' {
		err = p.invalid(member, "must be a string")
	}
	return text, err
}

// timestamp reads an event's timestamp. Existing clients send null instead of leaving it out.
func (p *parser) timestamp(e *bus.Event) error {
	kind, number, err := p.Token()
	switch {
	case err != nil:
		return err
	case kind == 'n':
		return nil
	case kind != '0':
		return p.invalid("timestamp", "must be an integer")
	}
	ms, ok := ParseInteger(number)
	if !ok {
		return p.invalid("timestamp", "must be an integer of at most 64 bits")
	}
	e.Timestamp = ms
	return nil
}

// data reads an event's data and packs it. Null means no data.
func (p *parser) data() error {
	if p.Peek() == 'n' {
		_, _, err := p.Token()
		return err
	}
	outerDepth := 1 // the event
	if p.inArray {
		outerDepth++
	}
	return p.pack(outerDepth)
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

// pointer is where the event is in the text that is being read.
func (p *parser) pointer() string {
	if !p.inArray {
		return ""
	}
	return "/" + strconv.Itoa(len(p.ends))
}

// invalid is an error about a member of the event.
func (p *parser) invalid(member, detail string) error {
	return &bus.Invalid{Pointer: string(jsontext.Pointer(p.pointer()).AppendToken(member)), Detail: detail}
}
