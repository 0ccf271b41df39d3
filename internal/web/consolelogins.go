package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"unicode/utf8"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// loginOperations are for every client and the operator.
func (a *API) loginOperations() []operation {
	return []operation{
		{
			method: http.MethodPost, path: "/console_logins", handle: a.postConsoleLogin, query: unchecked,
			id: "addConsoleLogin", tag: "tokens",
			summary: "Make a link that logs in to the console",
			about: "It logs in as who asks for it, once, within 60 s. Anybody who has the link may log in with it. A" +
				" client may have 20 links at a time: a new one ends its oldest.",
			body:    &body{of: sentLogin{}, example: `{"person":"mary","look_only":true}`, optional: true},
			returns: returns(http.StatusCreated, "The link.", consoleLoginView{}),
			fails:   []problem{notFound},
		},
	}
}

// Logins make codes that log in to the console, once and soon: a client by its token, root by the
// empty one. They fail with [bus.ErrUnavailable].
type Logins interface {
	NewCode(ctx context.Context, token bus.Token, person string, lookOnly bool) (code string, err error)
}

// consoleLoginView is a link that logs in to the console.
type consoleLoginView struct {
	// Relative to the address of the bus, unless the console has one of its own. The code is in the
	// fragment, which browsers send to no server.
	URL string `json:"url" api:"format=uri-reference"`
}

// sentLogin is the body of a request for a login link.
type sentLogin struct {
	// Who logs in, for the log and the activity. The bus does not check it.
	Person string `json:"person" api:"maxLength=64"`
	// Whether the login changes nothing. Such a login lasts 30 days, others last 12 h. False if left
	// out.
	LookOnly bool `json:"look_only"`
}

// maxPerson is how many characters the name of a person may have.
const maxPerson = 64

// postConsoleLogin makes a link that logs in to the console as the caller.
func (a *API) postConsoleLogin(w http.ResponseWriter, r *http.Request) {
	view, err := a.newConsoleLogin(w, r)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	rest.WriteJSON(w, http.StatusCreated, view)
}

func (a *API) newConsoleLogin(w http.ResponseWriter, r *http.Request) (view consoleLoginView, err error) {
	if a.config.Logins == nil {
		return view, &rest.Problem{Status: http.StatusNotFound, Detail: "this bus has no console: ROUTEMASTER_CONSOLE is off"}
	}
	var sent sentLogin
	if err := a.ReadOptionalJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return view, err
	}
	if utf8.RuneCountInString(sent.Person) > maxPerson {
		return view, bus.Invalidf("/person", "must have at most %d characters", maxPerson)
	}
	code, err := a.config.Logins.NewCode(r.Context(), rest.Caller(r).Token, sent.Person, sent.LookOnly)
	if err != nil {
		return view, err
	}
	a.LogChange(r, "console login created", slog.Bool("look_only", sent.LookOnly))
	view.URL = a.consoleAddress(r) + "console/login#code=" + code
	return view, nil
}

// consoleAddress returns the console's URL for the sender of a request. It is empty if the console
// is at the address of the bus: only the sender knows that.
func (a *API) consoleAddress(r *http.Request) string {
	if a.config.ConsoleListener == nil {
		return ""
	}
	host, port, _ := net.SplitHostPort(a.config.ConsoleListener.Addr().String())
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() {
		host = (&url.URL{Host: r.Host}).Hostname()
	}
	scheme := "http://"
	if a.config.ForceTLS || a.config.Certificate != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port) + "/"
}
