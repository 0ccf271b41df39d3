package view

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"routemaster/client"
)

// FieldKind is the type of a form field's value.
type FieldKind string

// The kinds of fields.
const (
	Text   FieldKind = "text"
	Number FieldKind = "number"
	// Lines is words, one a line.
	Lines FieldKind = "lines"
	// Code is text of several lines that stands as it is.
	Code FieldKind = "code"
	// Check is "on" or empty.
	Check FieldKind = "check"
	// Choice is one of [Field.Choices].
	Choice FieldKind = "choice"
	// Secret is not shown while it is typed.
	Secret FieldKind = "secret"
)

// Field is a field of a form.
type Field struct {
	// Name is also the JSON pointer, without its first slash, of the member that the field sets, by
	// which the errors of the API find it.
	Name, Label, Hint string
	Kind              FieldKind
	Choices           []string
	// Suggestions are values that the browser offers.
	Suggestions []string
	Required    bool
	Value       string
	// Error says why the value is wrong.
	Error string
	// Now is the value that was saved meanwhile, if it differs from the value that the form was made
	// from.
	Now string
}

// Form is the fields of a form, and its error.
type Form struct {
	Fields []Field
	// Error is an error of the whole form, or why its button was refused.
	Error string
}

// Fill takes over the values that a browser has sent. A checkbox that is not sent is not checked;
// other fields that are not sent stay.
func (f *Form) Fill(sent url.Values) {
	for i := range f.Fields {
		field := &f.Fields[i]
		if field.Kind == Check || sent.Has(field.Name) {
			field.Value = strings.ReplaceAll(sent.Get(field.Name), "\r\n", "\n")
		}
	}
}

// Field is the field of a name. It panics if there is none.
func (f *Form) Field(name string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	panic("the form has no field " + name)
}

// Value returns the value of a field, without space around it.
func (f *Form) Value(name string) string { return strings.TrimSpace(f.Field(name).Value) }

// With returns the form with the bus's error at the field that the error names, or else at the
// form.
func (f Form) With(refused *client.Error) Form {
	if refused == nil {
		return f
	}
	f.Fields = slices.Clone(f.Fields)
	text := cmp.Or(refused.Detail, refused.Title)
	pointer := strings.TrimPrefix(refused.Pointer, "/")
	for i := len(f.Fields) - 1; i >= 0; i-- { // a nested field stands behind its parent
		rest, below := strings.CutPrefix(pointer, f.Fields[i].Name)
		if below && (rest == "" || rest[0] == '/') {
			f.Fields[i].Error = text
			return f
		}
	}
	if refused.Pointer != "" {
		text = refused.Pointer + ": " + text
	}
	f.Error = text
	return f
}
