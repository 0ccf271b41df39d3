package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ValueAt returns the value of an event at a JSON pointer (RFC 6901) into the event as a delivery
// has it, as JSON; nil if there is none. It fails if packed is not an event.
func ValueAt(packed PackedEvent, pointer string) (jsontext.Value, error) {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	values, err := u.event(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack event: %w", err)
	}
	tokens := slices.Collect(jsontext.Pointer(pointer).Tokens())
	for i, field := range eventFields {
		if len(tokens) == 0 || values[i] == "" || !strings.HasSuffix(field.delivered, `"`+tokens[0]+`":`) {
			continue
		}
		u.read(values[i])
		value, err := u.appendJSON(nil)
		if err != nil {
			return nil, fmt.Errorf("unpack event: %w", err)
		}
		return descend(value, tokens[1:]), nil
	}
	return nil, nil
}

// descend returns the value inside another where a path leads, nil if it leads nowhere.
func descend(value jsontext.Value, path []string) jsontext.Value {
	for _, token := range path {
		d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
		begin, err := d.ReadToken()
		if err != nil {
			return nil
		}
		switch begin.Kind() {
		case '{':
			value = member(d, token)
		case '[':
			value = element(d, token)
		default:
			return nil
		}
	}
	return value
}

// member reads the value of an object's member of a name.
func member(d *jsontext.Decoder, name string) jsontext.Value {
	for d.PeekKind() == '"' {
		found, err := d.ReadToken()
		if err != nil {
			return nil
		}
		matches := found.String() == name
		value, err := d.ReadValue()
		if err != nil || matches {
			return value.Clone()
		}
	}
	return nil
}

// element reads the element of an array with an index, as a pointer has it.
func element(d *jsontext.Decoder, index string) jsontext.Value {
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || strconv.Itoa(n) != index {
		return nil
	}
	for ; d.PeekKind() != ']'; n-- {
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if n == 0 {
			return value.Clone()
		}
	}
	return nil
}
