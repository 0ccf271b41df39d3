package machines

import (
	"bytes"
	"encoding/json"
	"io"

	"routemaster/internal/bus"
)

// Object is a JSON object, its numbers as they were written (json.Number).
type Object map[string]any

// ParseObject reads a JSON object. It fails with a [bus.Invalid].
func ParseObject(text []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, bus.Invalidf("", "is not JSON: %v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, bus.Invalidf("", "is not JSON: something follows the object")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, bus.Invalidf("", "must be a JSON object")
	}
	return object, nil
}

// Pack writes an object, its keys in order, as the metadata of a label. It fails with a
// [bus.Invalid] if that would be longer than [MaxMetadata].
func (o Object) Pack() ([]byte, error) {
	text, err := Encode(o)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxMetadata {
		return nil, bus.Invalidf("", "the metadata of a label would be %d bytes; %d are allowed", len(text), MaxMetadata)
	}
	return text, nil
}

// Encode writes a value as JSON on one line, without the escapes that are only for HTML.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Merge returns an object with a patch: objects merge, any other value replaces the old one, and
// null removes it, as RFC 7396 says. With keepNull, null is stored instead. Neither argument is
// changed.
func (o Object) Merge(patch Object, keepNull bool) Object {
	return mergeObjects(o, patch, keepNull)
}

func mergeObjects(target, patch map[string]any, keepNull bool) map[string]any {
	merged := make(map[string]any, len(target)+len(patch))
	for key, value := range target {
		merged[key] = value
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			if keepNull {
				merged[key] = nil
			} else {
				delete(merged, key)
			}
		case map[string]any:
			there, _ := merged[key].(map[string]any)
			merged[key] = mergeObjects(there, value, keepNull)
		default:
			merged[key] = value
		}
	}
	return merged
}

// Has reports whether an object has a path, even if its value is null.
func (o Object) Has(path []string) bool {
	_, ok := o.find(path)
	return ok
}

// At returns the value at a path; nil if there is none.
func (o Object) At(path []string) any {
	value, _ := o.find(path)
	return value
}

func (o Object) find(path []string) (value any, ok bool) {
	value = map[string]any(o)
	for _, name := range path {
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil, false
		}
		if value, ok = object[name]; !ok {
			return nil, false
		}
	}
	return value, ok
}
