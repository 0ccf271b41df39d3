package rest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// ReadJSON reads a request's body, of at most maxBytes, into the struct that into points to. See
// [decode]. Errors may also be [Problem]s.
func (s *Service) ReadJSON(w http.ResponseWriter, r *http.Request, maxBytes int, into any) error {
	release, err := s.ReadHeldJSON(w, r, maxBytes, into)
	defer release()
	return err
}

// ReadHeldJSON is [Service.ReadJSON] for a request that may wait with the body it has read: the
// body counts as taken until release is called, which is never nil.
func (s *Service) ReadHeldJSON(w http.ResponseWriter, r *http.Request, maxBytes int, into any) (release func(), err error) {
	text, err := s.ReadBody(w, r, maxBytes, maxBytes)
	if err != nil {
		return func() {}, err
	}
	return func() { s.Release(r, text) }, decode(text, into, strictness(r))
}

// replacedPath begins the paths that the bus has from the job service that it replaces.
const replacedPath = "/v1/jobs"

// strictness returns how strictly the members of a request's body are matched. Services and clients
// of the job service that the bus replaces send members that it did not read, and names in
// capitals.
func strictness(r *http.Request) json.Options {
	if r.URL.Path != replacedPath && !strings.HasPrefix(r.URL.Path, replacedPath+"/") {
		return json.RejectUnknownMembers(true)
	}
	return json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))
}

// ReadOptionalJSON is [Service.ReadJSON] for a request that may have no body, which is as an empty
// object.
func (s *Service) ReadOptionalJSON(w http.ResponseWriter, r *http.Request, maxBytes int, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return s.ReadJSON(w, r, maxBytes, into)
}

// RefuseBody fails with a [bus.Invalid] if a request that takes nothing has sent something other
// than an empty object. Errors may also be [Problem]s.
func (s *Service) RefuseBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	text, err := s.Buffers.Read(holder(r), http.MaxBytesReader(w, r.Body, MaxValueBody))
	if err != nil {
		return unread(w, err)
	}
	defer s.Release(r, text)
	if len(bytes.TrimSpace(text)) > 0 && decode(text, &struct{}{}, strictness(r)) != nil {
		return bus.Invalidf("", "this takes no body; send none")
	}
	return nil
}

// decode reads one JSON object into the struct that into points to: it must be valid UTF-8, without
// duplicate names, and nothing may follow; names are as strict as [strictness] has them. Null for a
// pointer is as if the member were left out, since existing clients send it; null is refused for
// other fields. The error is a [bus.Invalid] that points at the value at fault.
func decode(text []byte, into any, names json.Options) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	err := json.UnmarshalDecode(decoder, into, names, json.WithUnmarshalers(checkKind))
	if err == nil {
		err = wire.ExpectEnd(decoder)
	}
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
		return invalid
	}
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return bus.Invalidf(string(wrong.JSONPointer), "%s", expected(wrong))
	}
	return wire.SyntaxError(text, err)
}

// Nullable is a member of a request for which null is not the same as leaving it out.
type Nullable[T any] struct {
	// Sent is whether it was not left out.
	Sent bool
	// Value is nil if it was left out, or null.
	Value *T
}

// UnmarshalJSONFrom reads the member's value.
func (n *Nullable[T]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	n.Sent = true
	return json.UnmarshalDecode(decoder, &n.Value)
}

// jsonKinds has the JSON kind of each kind of field in requests.
var jsonKinds = map[reflect.Kind]struct {
	kinds string // one or two [jsontext.Kind]s
	name  string
}{
	reflect.Struct: {"{", "an object"},
	reflect.Slice:  {"[", "an array"},
	reflect.String: {`"`, "a string"},
	reflect.Int64:  {"0", "an integer"},
	reflect.Int16:  {"0", "an integer"},
	reflect.Bool:   {"tf", "true or false"},
}

// checkKind refuses a value of the wrong kind by its first token. It also refuses null, which
// package json would take for the zero value. What reads itself may be of any kind.
var checkKind = json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, into any) error {
	switch into.(type) {
	case json.Unmarshaler, json.UnmarshalerFrom:
		return errors.ErrUnsupported
	}
	want, known := jsonKinds[reflect.TypeOf(into).Elem().Kind()]
	if got := decoder.PeekKind(); !known || strings.ContainsRune(want.kinds, rune(got)) || got == jsontext.KindInvalid {
		return errors.ErrUnsupported
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	return bus.Invalidf(string(decoder.StackPointer()), "must be %s", want.name)
})

// expected names the allowed members in place of an unknown one, or the range of a number that does
// not fit.
func expected(wrong *json.SemanticError) string {
	if !errors.Is(wrong, json.ErrUnknownName) {
		bits := 64
		if wrong.GoType != nil && wrong.GoType.Kind() == reflect.Int16 {
			bits = 16
		}
		return fmt.Sprintf("must be an integer of at most %d bits, without a fraction or an exponent", bits)
	}
	var names []string
	for _, field := range reflect.VisibleFields(wrong.GoType) {
		names = append(names, field.Tag.Get("json"))
	}
	return "is not known here; known are " + strings.Join(names, ", ")
}
