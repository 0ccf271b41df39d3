package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/web/server"
)

// How many bytes a request's body may have. Whatever else is allowed fits: a value's text may be six times as long as the
// value, since JSON can write each character as \u0000.
const (
	// maxValueBody is of one value without its data.
	maxValueBody = 64 << 10
	// maxLongBody is of an array of events, and of a subscription, which names many topics. 1,000 events with URLs of
	// 1,024 characters and 64 bytes of data fit.
	maxLongBody = 4 << 20
	escapedLen  = 6
)

// body reads a request's JSON strictly: one value, in valid UTF-8, without duplicate names. Its errors are
// [bus.Invalid], with the pointer of the value at fault, or a [problem].
type body struct {
	text []byte
	json *jsontext.Decoder
	// read has what text is a part of: the decoder takes it from there without a copy.
	read    bytes.Buffer
	buffers *server.Buffers
}

// bodies are used again: making a decoder takes longer than to read an event.
var bodies = sync.Pool{New: func() any { return &body{json: new(jsontext.Decoder)} }}

// release gives a body and its memory back; whoever reads a body must. Nothing that was read from it may be used any
// more but strings and copies.
func (b *body) release() {
	b.buffers.Release(b.text)
	b.text, b.read = nil, bytes.Buffer{}
	b.json.Reset(&b.read) // it lets go of the text
	bodies.Put(b)
}

// readBody reads a request's body: one value of any kind but for a long array.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	return s.readBodyUpTo(w, r, s.maxValue(), s.maxValue())
}

// maxValue is the most bytes of one value.
func (s *Server) maxValue() int { return maxValueBody + escapedLen*s.ingest.MaxEventData() }

// readBodyUpTo reads a request's body, of at most so many bytes if it is an array, and of at most maxValue if not.
func (s *Server) readBodyUpTo(w http.ResponseWriter, r *http.Request, maxValue, maxArray int) (*body, error) {
	text, err := s.buffers.Read(http.MaxBytesReader(w, r.Body, int64(max(maxValue, maxArray))))
	if err != nil {
		return nil, unread(w, err)
	}
	start := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(start) == 0:
		err = bus.Invalidf("", "the body is empty; send JSON")
	case len(text) > maxValue && start[0] != '[':
		err = tooLarge(int64(maxValue))
	case len(text) > maxArray:
		err = tooLarge(int64(maxArray))
	}
	if err != nil {
		s.buffers.Release(text)
		return nil, err
	}
	b := bodies.Get().(*body)
	b.text, b.buffers = text, s.buffers
	b.read = *bytes.NewBuffer(text)
	b.json.Reset(&b.read)
	return b, nil
}

// unread is the answer to a body that was not read to its end.
func unread(w http.ResponseWriter, err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(over.Limit)
	}
	if errors.Is(err, server.ErrBodyBudget) {
		return refuseBody(w)
	}
	return &problem{Status: http.StatusBadRequest, Detail: "the body did not arrive whole; send it again"}
}

func tooLarge(most int64) error {
	return &problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the body has more than %d bytes; send less at once", most),
	}
}

// isArray reports whether an array is next.
func (b *body) isArray() bool { return b.json.PeekKind() == '[' }

// object reads an object, and calls member for each of its names, to read the value. The name is good until then: no
// string is made of it.
func (b *body) object(member func(name []byte) error) error {
	if err := b.begin('{', "an object"); err != nil {
		return err
	}
	for b.json.PeekKind() != '}' {
		name, err := b.json.ReadValue()
		if err != nil {
			return b.syntax(err)
		}
		if err := member(unquoted(name)); err != nil {
			return err
		}
	}
	_, err := b.json.ReadToken()
	return b.syntax(err)
}

// unquoted is the text of a valid JSON string.
func unquoted(text jsontext.Value) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	unescaped, _ := jsontext.AppendUnquote(nil, text)
	return unescaped
}

// array reads an array, and calls element for each of its values, to read it.
func (b *body) array(element func() error) error {
	if err := b.begin('[', "an array"); err != nil {
		return err
	}
	for b.json.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := b.json.ReadToken()
	return b.syntax(err)
}

func (b *body) begin(kind jsontext.Kind, what string) error {
	token, err := b.value()
	if err != nil {
		return err
	}
	if token.Kind() != kind {
		return b.invalid("must be " + what)
	}
	return nil
}

// value reads one token.
func (b *body) value() (jsontext.Token, error) {
	token, err := b.json.ReadToken()
	return token, b.syntax(err)
}

// string reads a string.
func (b *body) string() (string, error) {
	token, err := b.value()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", b.invalid("must be a string")
	}
	return token.String(), nil
}

// optional reads a value of an optional field. Null is as if the field were left out: existing clients send it.
func optional[T any](b *body, read func(*body) (T, error)) (value T, given bool, err error) {
	if b.json.PeekKind() == 'n' {
		_, err = b.value()
		return value, false, err
	}
	value, err = read(b)
	return value, err == nil, err
}

// integer reads an integer of 64 bits, written without a fraction or an exponent.
func (b *body) integer() (int64, error) {
	token, err := b.value()
	if err != nil {
		return 0, err
	}
	if token.Kind() != '0' {
		return 0, b.invalid("must be an integer")
	}
	n, err := strconv.ParseInt(token.String(), 10, 64)
	if err != nil {
		return 0, b.invalid("must be an integer of at most 64 bits, without a fraction or an exponent")
	}
	return n, nil
}

// wholeNumber reads a number of 64 bits without a fraction, however it is written: 7, 7.0 or 0.7e1.
func (b *body) wholeNumber() (int64, error) {
	token, err := b.value()
	if err != nil {
		return 0, err
	}
	if token.Kind() != '0' {
		return 0, b.invalid("must be an integer")
	}
	n, ok := parseWholeNumber(token.String())
	if !ok {
		return 0, b.invalid("must be an integer of at most 64 bits")
	}
	return n, nil
}

// parseWholeNumber parses a JSON number, exactly.
func parseWholeNumber(text string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[at+1:]); err != nil {
			return 0, false
		}
		mantissa = text[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	if digits == "" || digits == "-" {
		return 0, true
	}
	zeros := len(whole) - len(digits) + exponent
	if zeros < 0 || zeros > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

// maxDigits is the most digits of an integer of 64 bits.
const maxDigits = 19

// raw reads any value, as it is written.
func (b *body) raw() ([]byte, error) {
	value, err := b.json.ReadValue()
	if err != nil {
		return nil, b.syntax(err)
	}
	return bytes.Clone(value), nil
}

// end makes sure that nothing follows.
func (b *body) end() error {
	_, err := b.json.ReadToken()
	if err == nil {
		return bus.Invalidf("", "there is something after the JSON value; send one value")
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return b.syntax(err)
}

// unknown is the error for a name that is not among those known.
func (b *body) unknown(known ...string) error {
	return b.invalid("is not known here; known are " + strings.Join(known, ", "))
}

// invalid is an error about the value, or the name, that was read last.
func (b *body) invalid(detail string) error {
	return &bus.Invalid{Pointer: string(b.json.StackPointer()), Detail: detail}
}

// syntax says where the text stops being JSON.
func (b *body) syntax(err error) error {
	if err == nil {
		return nil
	}
	offset, reason := len(b.text), "it ends too early"
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = int(wrong.ByteOffset)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			reason = wrong.Err.Error()
		}
	}
	before := b.text[:min(offset, len(b.text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (1 + bytes.LastIndexByte(before, '\n'))
	return bus.Invalidf("", "the body is not valid JSON at line %d, column %d: %s", line, column, reason)
}
