package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Settings is a form of settings that are there already.
type Settings struct {
	Form
	// Digest stands for the settings that the form was made from.
	Digest string
	// now are the fields with their current values.
	now []Field
}

// newSettings makes a form of fields that have the current values.
func newSettings(fields []Field) Settings {
	digest := sha256.New()
	for _, field := range fields {
		if field.Kind != Secret {
			fmt.Fprintf(digest, "%s=%q\n", field.Name, field.Value)
		}
	}
	return Settings{Form{Fields: slices.Clone(fields)}, hex.EncodeToString(digest.Sum(nil)[:12]), fields}
}

// StaleSettings says that a form was made from other settings than there are.
const StaleSettings = "The settings were changed while you edited them. Nothing was saved. Compare your values with what is saved now, and save again."

// Stale reports whether the settings have changed since a form was made, by the digest that it was
// sent with. Then each changed field gets its current value too.
func (s *Settings) Stale(digest string) bool {
	if s.Digest == digest {
		return false
	}
	for i := range s.Fields {
		if was := s.now[i].Value; s.Fields[i].Kind != Secret && was != s.Fields[i].Value {
			s.Fields[i].Now = cmp.Or(was, "empty")
		}
	}
	return true
}

// Changes returns the members of a PATCH that makes the settings equal to the form. Unchanged
// members are left out.
func (s *Settings) Changes() map[string]any {
	changes := map[string]any{}
	for i, field := range s.Fields {
		switch of, _, below := strings.Cut(field.Name, "/"); {
		case strings.TrimSpace(field.Value) == s.now[i].Value:
		case below || s.hasBelow(of):
			changes[of] = s.object(of)
		default:
			changes[field.Name] = field.json()
		}
	}
	return changes
}

// Ignored is a field that was changed below one that is not checked, and that one: saved, it would
// be lost. Both are nil if there is none.
func (s *Settings) Ignored() (field, above *Field) {
	for i, f := range s.Fields {
		of, _, below := strings.Cut(f.Name, "/")
		if below && s.Value(of) == "" && strings.TrimSpace(f.Value) != s.now[i].Value {
			return &s.Fields[i], s.Field(of)
		}
	}
	return nil, nil
}

// hasBelow reports whether fields stand below a name.
func (s *Settings) hasBelow(name string) bool {
	return slices.ContainsFunc(s.Fields, func(f Field) bool { return strings.HasPrefix(f.Name, name+"/") })
}

// object returns the object made by the fields below a name, or nil if the name's own field is not
// checked.
func (s *Settings) object(name string) any {
	if s.Value(name) == "" {
		return nil
	}
	object := map[string]any{}
	for _, field := range s.Fields {
		if member, ok := strings.CutPrefix(field.Name, name+"/"); ok && strings.TrimSpace(field.Value) != "" {
			object[member] = field.json()
		}
	}
	return object
}

// json returns the value as the API takes it; nil is the default. A malformed number stays text, so
// that the API reports the error.
func (f Field) json() any {
	text := strings.TrimSpace(f.Value)
	switch f.Kind {
	case Check:
		return text != ""
	case Lines:
		return append([]string{}, strings.Fields(text)...)
	case Number:
		if n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64); err == nil {
			return n
		}
	}
	switch {
	case text == "":
		return nil
	case f.Kind == Code:
		return json.RawMessage(text)
	}
	return text
}
