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

// Logins make codes that log in to the console, once and soon: a client by its token, root by the
// empty one. They fail with [bus.ErrUnavailable].
type Logins interface {
	NewCode(ctx context.Context, token bus.Token, person string, lookOnly bool) (code string, err error)
}

// consoleLoginView is a link that logs in to the console.
type consoleLoginView struct {
	// URL is relative to the address of the bus, unless the console has an address of its own. The
	// code is in its fragment, which browsers send to no server.
	URL string `json:"url"`
}

// maxPerson is how many characters the name of a person may have.
const maxPerson = 64

// postConsoleLogin makes a link that logs in to the console as who calls.
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
	var sent struct {
		Person   string `json:"person"`
		LookOnly bool   `json:"look_only"`
	}
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

// consoleAddress is where the console is, for who has sent a request: empty if that is at the
// address of the bus, which only the sender knows.
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
