package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"routemaster/internal/console/view"
)

// API is a description of the API, in OpenAPI, as a page shows it.
type API struct {
	Title, Summary string
	Groups         []Group
}

// Group is the operations of a tag.
type Group struct {
	Name, Summary string
	Operations    []Operation
}

// Operation is a request of the API.
type Operation struct {
	ID, Method, Path, Summary, Description string
	// Open is whether it needs no credentials.
	Open       bool
	Parameters []Property
	// Body are the fields of its JSON, if that is an object.
	Body    []Property
	Answers []Property
	Command string
}

// Property is a parameter, a field or an answer.
type Property struct {
	Name, Type, Summary string
	Required            bool
}

// document is what is read of an OpenAPI document.
type document struct {
	Info struct{ Title, Summary string }
	Tags []struct{ Name, Description string }
	// Paths have operations by their methods in lower case.
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
		Responses  map[string]response
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          *[]json.RawMessage
	Parameters                        []parameter
	RequestBody                       struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]response
}

type parameter struct {
	Ref               string `json:"$ref"`
	Name, Description string
	Required          bool
	Schema            schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
}

type schema struct {
	Ref string `json:"$ref"`
	// Type is a string or several.
	Type             any
	Description      string
	Required         []string
	Properties       map[string]schema
	Items            *schema
	OneOf            []schema
	Enum             []any
	Minimum, Maximum json.Number
	MaxLength        json.Number
	Pattern          string
}

// ParseAPI reads a description of the API.
func ParseAPI(text []byte) (a API, err error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return a, err
	}
	a = API{Title: d.Info.Title, Summary: d.Info.Summary}
	groups := map[string]*Group{}
	for _, tag := range d.Tags {
		a.Groups = append(a.Groups, Group{Name: tag.Name, Summary: tag.Description})
	}
	for i := range a.Groups {
		groups[a.Groups[i].Name] = &a.Groups[i]
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			raw, ok := d.Paths[path][strings.ToLower(method)]
			if !ok {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				return a, err
			}
			for _, tag := range o.Tags {
				if g := groups[tag]; g != nil {
					g.Operations = append(g.Operations, d.operation(method, path, o))
				}
			}
		}
	}
	return a, nil
}

func (d *document) operation(method, path string, o operation) Operation {
	shown := Operation{
		ID: o.OperationID, Method: method, Path: path, Summary: o.Summary, Description: o.Description,
		Open: o.Security != nil && len(*o.Security) == 0,
	}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[name(p.Ref)]
		}
		shown.Parameters = append(shown.Parameters, Property{p.Name, d.typeOf(p.Schema), p.Description, p.Required})
	}
	var body any
	if content, ok := o.RequestBody.Content["application/json"]; ok {
		shown.Body = d.fields(content.Schema)
		body = d.example(content.Schema, 0)
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := o.Responses[status]
		if answer.Ref != "" {
			answer = d.Components.Responses[name(answer.Ref)]
		}
		shown.Answers = append(shown.Answers, Property{Name: status, Summary: answer.Description})
	}
	shown.Command = view.Command(method, path, body)
	if shown.Open {
		shown.Command = strings.Replace(shown.Command, `-u "$TOKEN:" `, "", 1)
	}
	return shown
}

// name is the last part of a reference.
func name(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// resolve follows a reference. The description beside it counts.
func (d *document) resolve(s schema) schema {
	for range 8 { // a reference to itself would have no end
		if s.Ref == "" {
			break
		}
		description := s.Description
		if s = d.Components.Schemas[name(s.Ref)]; description != "" {
			s.Description = description
		}
	}
	return s
}

// fields are those of an object, or of the objects of an array, required ones first.
func (d *document) fields(s schema) (all []Property) {
	s = d.resolve(s)
	for _, one := range s.OneOf {
		if some := d.fields(one); len(some) > 0 {
			return some
		}
	}
	if s.Items != nil {
		return d.fields(*s.Items)
	}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		property := d.resolve(s.Properties[field])
		all = append(all, Property{field, d.typeOf(property), property.Description, slices.Contains(s.Required, field)})
	}
	slices.SortStableFunc(all, func(a, b Property) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return all
}

// typeOf writes the type of a value: "integer, 1 to 100", "string or null", "array of string".
func (d *document) typeOf(s schema) string {
	s = d.resolve(s)
	var words []string
	switch of := s.Type.(type) {
	case string:
		words = append(words, of)
	case []any:
		for _, one := range of {
			if text, ok := one.(string); ok {
				words = append(words, text)
			}
		}
	}
	for _, one := range s.OneOf {
		words = append(words, d.typeOf(one))
	}
	text := strings.Join(words, " or ")
	if s.Items != nil {
		text += " of " + d.typeOf(*s.Items)
	}
	if len(s.Enum) > 0 {
		text = enum(s.Enum)
	}
	switch {
	case s.Minimum != "" && s.Maximum != "":
		text += ", " + s.Minimum.String() + " to " + s.Maximum.String()
	case s.Minimum != "":
		text += ", " + s.Minimum.String() + " or more"
	case s.MaxLength != "":
		text += ", up to " + s.MaxLength.String() + " characters"
	}
	return text
}

func enum(values []any) string {
	var words []string
	for _, v := range values {
		words = append(words, view.JSON(v))
	}
	return strings.Join(words, " or ")
}

// example is a value of a type with what it must have, for a command.
func (d *document) example(s schema, depth int) any {
	s = d.resolve(s)
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0 && depth < 4:
		return d.example(s.OneOf[0], depth+1)
	case s.Items != nil && depth < 4:
		return []any{d.example(*s.Items, depth+1)}
	case s.Properties != nil && depth < 4:
		object := map[string]any{}
		for _, field := range s.Required {
			object[field] = d.example(s.Properties[field], depth+1)
		}
		return object
	}
	switch s.Type {
	case "integer", "number":
		return json.Number(orOne(s.Minimum))
	case "boolean":
		return true
	case "object":
		return map[string]any{}
	}
	return "…"
}

func orOne(n json.Number) string {
	if n == "" || n == "0" {
		return "1"
	}
	return n.String()
}

// Filter is the API with the operations whose method, path or summary have a text, whatever the
// case.
func (a API) Filter(text string) API {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return a
	}
	groups := a.Groups
	a.Groups = nil
	for _, g := range groups {
		all := g.Operations
		g.Operations = nil
		for _, o := range all {
			if strings.Contains(strings.ToLower(o.Method+" "+o.Path+" "+o.Summary), text) {
				g.Operations = append(g.Operations, o)
			}
		}
		if len(g.Operations) > 0 {
			a.Groups = append(a.Groups, g)
		}
	}
	return a
}
