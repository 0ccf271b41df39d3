package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
)

// MaxReceipt is the maximum size of a receipt in bytes.
const MaxReceipt = 256 << 10

// maxNote is the maximum length of a rejection's reason, in characters. Longer ones are cut.
const maxNote = 256

// Receipt is a subscriber's result for each event of a delivery. An event in neither list is
// acknowledged.
type Receipt struct {
	// Retry are the indexes of the events to deliver again, in order.
	Retry []int
	// Rejected are the events never to be delivered again, in the order of their indexes.
	Rejected []Rejection
}

// Rejection is an event that a subscriber rejects, and its reason, which may be empty.
type Rejection struct {
	Index  int
	Reason string
}

// ParseReceipt reads a receipt for a number of events, strictly: a text that it does not understand
// must not acknowledge anything. The error says what is wrong and where.
func ParseReceipt(text []byte, events int) (Receipt, error) {
	if len(text) > MaxReceipt {
		return Receipt{}, fmt.Errorf("the receipt is longer than %d bytes", MaxReceipt)
	}
	p := receiptParser{json: jsontext.NewDecoder(bytes.NewReader(text)), events: events, from: events, named: make([]byte, events)}
	err := p.object(p.member)
	if err == nil {
		err = ExpectEnd(p.json)
	}
	if err != nil {
		if _, syntax := errors.AsType[*jsontext.SyntacticError](err); syntax || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Receipt{}, SyntaxError(text, err)
		}
		return Receipt{}, err
	}
	return p.receipt(), nil
}

// receiptParser reads a receipt by its tokens.
type receiptParser struct {
	json   *jsontext.Decoder
	events int
	// from is the value of retry_from.
	from int
	// named says of each event in which list it is.
	named    []byte
	rejected []Rejection
}

// The lists in which an event may be.
const (
	inNone byte = iota
	inRetry
	inReject
)

func (p *receiptParser) receipt() (r Receipt) {
	slices.SortFunc(p.rejected, func(a, b Rejection) int { return a.Index - b.Index })
	r.Rejected = p.rejected
	for i, list := range p.named {
		if list == inRetry || list == inNone && i >= p.from {
			r.Retry = append(r.Retry, i)
		}
	}
	return r
}

// wrong is an error about the value that was read last.
func (p *receiptParser) wrong(format string, args ...any) error {
	return bus.Invalidf(string(p.json.StackPointer()), format, args...)
}

// object reads an object, calling member for the name of each of its members.
func (p *receiptParser) object(member func(name string) error) error {
	if err := p.open('{', "an object"); err != nil {
		return err
	}
	for p.json.PeekKind() != '}' {
		name, err := p.json.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := p.json.ReadToken()
	return err
}

// array reads an array, calling element for each of its elements.
func (p *receiptParser) array(element func() error) error {
	if err := p.open('[', "an array"); err != nil {
		return err
	}
	for p.json.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := p.json.ReadToken()
	return err
}

// open reads the first token of an object or an array.
func (p *receiptParser) open(kind jsontext.Kind, name string) error {
	token, err := p.json.ReadToken()
	if err == nil && token.Kind() != kind {
		err = p.wrong("must be %s", name)
	}
	return err
}

func (p *receiptParser) member(name string) (err error) {
	switch name {
	case "retry":
		return p.array(func() error {
			i, err := p.index()
			if err == nil {
				err = p.put(i, inRetry)
			}
			return err
		})
	case "retry_from":
		p.from, err = p.index()
		return err
	case "reject":
		return p.array(p.rejection)
	}
	return p.wrong("is not known here; known are retry, retry_from, reject")
}

// index reads the index of an event.
func (p *receiptParser) index() (int, error) {
	token, err := p.json.ReadToken()
	if err != nil {
		return 0, err
	}
	i, err := strconv.Atoi(token.String()) // fails for 3.0 and 3e0, which may be meant otherwise
	if token.Kind() != '0' || err != nil || i < 0 || i >= p.events {
		return 0, p.wrong("must be the index of an event, an integer from 0 to %d", p.events-1)
	}
	return i, nil
}

// put notes in which list an event is.
func (p *receiptParser) put(i int, list byte) error {
	if p.named[i] != inNone {
		return p.wrong("event %d is named twice", i)
	}
	p.named[i] = list
	return nil
}

// rejection reads an index, or an object of index and reason.
func (p *receiptParser) rejection() error {
	r := Rejection{Index: -1}
	var err error
	if p.json.PeekKind() == '{' {
		err = p.object(func(name string) (err error) {
			switch name {
			case "index":
				r.Index, err = p.index()
			case "reason":
				r.Reason, err = p.reason()
			default:
				err = p.wrong("is not known here; known are index, reason")
			}
			return err
		})
		if err == nil && r.Index < 0 {
			err = p.wrong("has no index")
		}
	} else {
		r.Index, err = p.index()
	}
	if err != nil {
		return err
	}
	p.rejected = append(p.rejected, r)
	return p.put(r.Index, inReject)
}

func (p *receiptParser) reason() (string, error) {
	token, err := p.json.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", p.wrong("must be a string")
	}
	reason := token.String()
	if utf8.RuneCountInString(reason) > maxNote {
		reason = string([]rune(reason)[:maxNote])
	}
	return reason, nil
}
