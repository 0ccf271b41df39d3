package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/internal/overview"
)

// Visitor is the person or client that looks at a page. The zero one is not logged in.
type Visitor struct {
	// Client is the public name of the client that is logged in, or of root.
	Client string
	Root   bool
	// Person is the name that was given at the login, which is not verified; it may be empty.
	Person string
	// LookOnly is set if nothing may be changed.
	LookOnly bool
}

// ErrSentBefore says that a form was sent before.
var ErrSentBefore = errors.New("the form was sent before")

// LoggedIn is whether it is a client or root.
func (v Visitor) LoggedIn() bool { return v.Client != "" }

// May is whether the visitor belongs to an audience.
func (v Visitor) May(a Audience) bool {
	return a == Anyone || a == Members && v.LoggedIn() || a == Root && v.Root
}

// Visit is a request for a page.
type Visit struct {
	Visitor
	Request *http.Request
	// Header is the response's header.
	Header http.Header
	// Bus calls the API of the bus in the name of the visitor, in this process. It is nil for visitors
	// who are not logged in.
	Bus *client.Client
	// As returns one that calls it in the name of the client that a token is of. Only root has tokens
	// of others.
	As func(token string) *client.Client
	// Figures and Tracks are of the bus, the same for all visitors.
	Figures overview.Figures
	Tracks  overview.Tracks
	Display Display
	// Now is the clock of the bus: see package clock.
	Now func() time.Time
	// IsOwn reports whether a token is the visitor's own.
	IsOwn func(token string) bool
	// Session stands for the login of the visitor, and Sessions are all logins: nil unless the
	// visitor is root.
	Session  string
	Sessions Sessions
	// Once submits the form with a nonce, unless it was sent before. If it is sent again at once, as
	// by a double click, the answer is the same; later the error is [ErrSentBefore]. It goes on when
	// the request of the visit is cancelled.
	Once func(nonce string, do func(context.Context) (Answer, error)) (Answer, error)
	// Secure is whether cookies are for TLS only.
	Secure bool
}

// Sessions are the logins to the console. [Store] says which errors there are.
type Sessions interface {
	// All lists them, the latest first.
	All(context.Context) ([]Listed, error)
	// EndID ends one, EndAll all of them.
	EndID(ctx context.Context, id string) error
	EndAll(context.Context) error
}

// IsRefresh reports whether live.js asks for the page, to refresh it. live.js takes only the
// elements with data-live from the body.
func (v *Visit) IsRefresh() bool {
	return v.LoggedIn() && v.Request.Header.Get("X-Refresh") != ""
}

// Context returns the request's context.
func (v *Visit) Context() context.Context { return v.Request.Context() }

// Path returns the value of a name in the page's path.
func (v *Visit) Path(name string) string { return v.Request.PathValue(name) }

// Query is a parameter of the query string, empty if there is none.
func (v *Visit) Query(name string) string { return v.Request.URL.Query().Get(name) }

// Form is a field of the form that was posted, empty if there is none.
func (v *Visit) Form(name string) string { return v.Request.PostFormValue(name) }
