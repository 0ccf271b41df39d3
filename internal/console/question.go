package console

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"routemaster/internal/console/view"
)

// Question is a page that asks before it does something.
type Question struct {
	// Path, For and Calls go to the [Page].
	Path  string
	For   Audience
	Calls string
	// Ask describes the action without taking it.
	Ask func(*Visit) (view.Confirm, error)
	// Do takes the action, after the required text was typed.
	Do func(*Visit) (Answer, error)
	// Back is the path of the page that leads here. Its names are in Path too.
	Back string
}

// Page is the page that asks.
func (q Question) Page() Page {
	return Page{
		Path: q.Path, Template: "confirm", For: q.For, Calls: q.Calls,
		Load: func(v *Visit) (any, error) {
			c, err := q.Ask(v)
			if err != nil {
				return nil, err
			}
			c.Back, err = Link(q.Path, q.Back, v.Names(q.Back)...)
			return c, err
		},
		Submit: func(v *Visit) (Answer, error) {
			c, err := q.Ask(v)
			if err != nil {
				return Answer{}, err
			}
			if !c.Typed(v.Form("name")) {
				return Answer{}, Refuse(http.StatusUnprocessableEntity, "/name", "Nothing was done: type "+c.Name+", as it is written here.")
			}
			return q.Do(v)
		},
	}
}

// inBraces are the names in a path.
var inBraces = regexp.MustCompile(`{(\w+)}`)

// Names returns the values of another path's names in the path of the visit.
func (v *Visit) Names(path string) (names []string) {
	for _, name := range inBraces.FindAllStringSubmatch(path, -1) {
		names = append(names, v.Path(name[1]))
	}
	return names
}

// RequireJSON refuses a form unless each of its fields of code is a JSON value, or may be empty and
// is.
func RequireJSON(f view.Form) error {
	for _, field := range f.Fields {
		text := strings.TrimSpace(field.Value)
		if field.Kind != view.Code || text == "" && !field.Required {
			continue
		}
		var value json.RawMessage
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return Refuse(http.StatusUnprocessableEntity, "/"+field.Name, "This is no JSON: "+err.Error()+".")
		}
	}
	return nil
}

// Fill fills a form with the posted values, if it was posted.
func (v *Visit) Fill(f *view.Form) {
	if v.Request.Method == http.MethodPost && v.Request.ParseForm() == nil {
		f.Fill(v.Request.PostForm)
	}
}
