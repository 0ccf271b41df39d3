package console

import (
	"errors"
	"net/http"
	"strings"

	"routemaster/client"
)

// Audience is who may see a page.
type Audience int

// The audiences. Members are clients and root.
const (
	Anyone Audience = iota
	Members
	Root
)

// Page is a page of the console, with or without a form.
type Page struct {
	// Path is where it is, from the console on, with names in braces: "topics/{topic}". That of the
	// overview is empty.
	Path string
	// Template is the file in templates that shows it, without ".html". It defines "title" and
	// "main".
	Template string
	// Nav is its name in the navigation; empty if it is not there. Group is which part of that it is
	// in, by the part's name; the first part, the bus itself, has none.
	Nav, Group string
	For        Audience
	// Common is whether the template defines "common" too: a part that everybody sees alike, but that
	// root may see other links. Then Load must go by the figures and the query alone: it is called
	// once a sample, with a visit that says of the visitor no more than whether it is root, and what
	// it gets is for all who look. "main" shows the part as .Common.
	Common bool
	// Load gets what the template shows as .Data; nil if there is nothing to get. A [client.Error]
	// is shown as the bus puts it.
	Load func(*Visit) (any, error)
	// Submit does what the page's form asks for when it is posted to the page's path. If the bus
	// refuses that, the page is shown again, with what it said as .Problem. It is nil if there is no
	// form.
	Submit func(*Visit) (Answer, error)
	// Calls is the route of the API that Submit calls, such as "DELETE /topics/{topic}". It is empty
	// if the form changes nothing but the console.
	Calls string
	// Personal is set if the form changes only what its sender sees: then who only looks may send it.
	Personal bool
}

// Services is the group of the services on the bus in the navigation.
const Services = "Services"

// Within is whether a page is another one, or below it.
func (p Page) Within(other Page) bool {
	return p.Path == other.Path || other.Path != "" && strings.HasPrefix(p.Path, other.Path+"/")
}

// Answer is what is shown after a form has been submitted.
type Answer struct {
	// To is the path of the page to go to, whose names are filled in.
	To    string
	Names []string
	// Query is added to the path, with its question mark; empty if there is none.
	Query string
	// Message says there what was done.
	Message string
	// Show, unless nil, is shown by the form's own template, in place of what Load gets, and nowhere
	// else: what is to be seen once.
	Show any
}

// SeeOther goes to a page, and says there what was done. Names fill in the path.
func SeeOther(message, to string, names ...string) Answer {
	return Answer{To: to, Names: names, Message: message}
}

// Show shows what is to be seen once.
func Show(data any) Answer { return Answer{Show: data} }

// Panel is a part of a page that fails alone.
type Panel[T any] struct {
	Value T
	// Problem is why there is no value, in words; empty if there is one.
	Problem string
}

// Part makes a panel of what a call returned.
func Part[T any](value T, err error) Panel[T] { return Panel[T]{value, Words(err)} }

// Words says what an error of a call means for who looks at a page; empty if it is nil.
func Words(err error) string {
	if err == nil {
		return ""
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Detail != "" {
		return refused.Detail
	}
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		return damaged.Error()
	}
	return "the bus did not answer"
}

// Refuse is an error that the console finds by itself, in the form of those of the bus. Pointer is
// the JSON pointer of the field at fault, empty if it is not one field.
func Refuse(status int, pointer, detail string) error {
	return &client.Error{Status: status, Title: http.StatusText(status), Pointer: pointer, Detail: detail}
}
