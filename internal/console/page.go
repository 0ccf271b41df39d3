package console

import (
	"errors"
	"net/http"
	"strings"

	"routemaster/client"
)

// Audience selects the visitors that may see a page.
type Audience int

// The audiences. Members are clients and root.
const (
	Anyone Audience = iota
	Members
	Root
)

// Page is a page of the console, with or without a form.
type Page struct {
	// Path is relative to the console, with names in braces: "topics/{topic}". It is empty for the
	// overview.
	Path string
	// Template is the file in templates that shows it, without ".html". It defines "title" and
	// "main".
	Template string
	// Nav is its name in the navigation; empty if it is not there. Group is which part of that it is
	// in, by the part's name; the first part, the bus itself, has none.
	Nav, Group string
	For        Audience
	// Common is set if the template also defines "common", a part that is the same for every visitor,
	// except that root may see other links. Load may then use only the figures and the query: it is
	// called once a sample, with a visit that tells only whether the visitor is root, and its result
	// is shared. "main" shows the part as .Common.
	Common bool
	// Load returns the template's .Data; it is nil if there is none. A [client.Error] is shown in the
	// bus's words.
	Load func(*Visit) (any, error)
	// Submit handles a form posted to the page's path. If the bus refuses the request, the page is
	// shown again with the error as .Problem. It is nil if there is no form.
	Submit func(*Visit) (Answer, error)
	// Calls is the route of the API that Submit calls, such as "DELETE /topics/{topic}". It is empty
	// if the form changes nothing but the console.
	Calls string
	// Personal is set if the form changes only the sender's own view, so that a look-only visitor may
	// send it.
	Personal bool
}

// Services is the group of the services on the bus in the navigation.
const Services = "Services"

// Within is whether a page is another one, or below it.
func (p Page) Within(other Page) bool {
	return p.Path == other.Path || other.Path != "" && strings.HasPrefix(p.Path, other.Path+"/")
}

// Answer is the response to a submitted form.
type Answer struct {
	// To is the path of the page to go to, whose names are filled in.
	To    string
	Names []string
	// Query is added to the path, with its question mark; empty if there is none.
	Query string
	// Message is the message shown there.
	Message string
	// Show, unless nil, is the data for the form's own template, in place of Load's. It is for data
	// that is shown only once.
	Show any
}

// SeeOther redirects to a page, which shows the message. Names fill in the path.
func SeeOther(message, to string, names ...string) Answer {
	return Answer{To: to, Names: names, Message: message}
}

// Show shows data that is shown only once.
func Show(data any) Answer { return Answer{Show: data} }

// Panel is a part of a page that fails alone.
type Panel[T any] struct {
	Value T
	// Problem is why there is no value, in words; empty if there is one.
	Problem string
}

// Part makes a panel from the results of a call.
func Part[T any](value T, err error) Panel[T] { return Panel[T]{value, Words(err)} }

// Words returns the text of a call's error for visitors; empty if it is nil.
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

// Refuse returns an error of the console itself, in the form of the bus's errors. Pointer is the
// JSON pointer of the field at fault, empty if it is not one field.
func Refuse(status int, pointer, detail string) error {
	return &client.Error{Status: status, Title: http.StatusText(status), Pointer: pointer, Detail: detail}
}
