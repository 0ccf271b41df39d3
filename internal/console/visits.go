package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/overview"
)

// caller is the response of GET /whoami.
type caller struct {
	Client string `json:"client"`
	Root   bool   `json:"root"`
}

// whoAmI asks the bus whose a client's credentials are.
func whoAmI(r *http.Request, c *client.Client) (who caller, err error) {
	_, err = c.Call(r.Context(), client.Request{Operation: "ask who calls", Method: http.MethodGet, Path: "/whoami"}, &who)
	return who, err
}

// stranger returns a visit without a login.
func (s *server) stranger(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{Request: r, Header: w.Header(), Display: ReadDisplay(r), Secure: s.Secure, Now: s.Now}
}

// visit identifies the visitor of a page. The visitor is not logged in if the session has ended, or
// its token was revoked. The error is that Redis is unavailable.
func (s *server) visit(w http.ResponseWriter, r *http.Request) (*Visit, error) {
	v := s.stranger(w, r)
	cookie, err := r.Cookie(s.cookieName("routemaster"))
	if err != nil {
		return v, nil
	}
	known, err := s.Sessions.Find(r.Context(), cookie.Value)
	if errors.Is(err, ErrNone) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Bus = s.bus(w, r, s.secret(known), known.Person)
	who := caller{Client: known.Client}
	// A session of root needs no more proof: another root key ends it. A token may have been revoked.
	if !known.Root() && !known.Stale { // else the bus could not say
		if who, err = whoAmI(r, v.Bus); isStatus(err, http.StatusUnauthorized) {
			_ = s.Sessions.End(r.Context(), cookie.Value) // else it ends by itself
			return v, nil
		} else if err != nil {
			return v, err
		}
	}
	v.Visitor = Visitor{
		Client: who.Client, Root: known.Root(), Person: known.Person, LookOnly: known.LookOnly,
	}
	v.Session = ID(cookie.Value)
	v.IsOwn = func(token string) bool { return token == string(known.Token) }
	v.Once = func(nonce string, do func(context.Context) (Answer, error)) (Answer, error) {
		return s.once(v, nonce, do)
	}
	if v.Root {
		v.Sessions = sessions{s.Sessions, s.Log, v.Person}
	}
	v.As = func(token string) *client.Client { return s.bus(w, r, token, known.Person) }
	s.look(v)
	return v, nil
}

// secret returns the credentials of a session for the API.
func (s *server) secret(of Session) string {
	if of.Root() {
		return s.RootKey
	}
	return string(of.Token)
}

// look has a visit see the figures.
func (s *server) look(v *Visit) {
	v.Tracks = func(overview.Subject, overview.Range) (overview.Track, bool) { return overview.Track{}, false }
	if s.Live != nil {
		v.Figures, v.Tracks = s.Live.Figures(v.Context()), s.Live.Tracks(v.Context())
	}
}

// enter makes a visit for a visitor who may see a page. It answers others itself, and is false.
func (s *server) enter(w http.ResponseWriter, r *http.Request, p Page) (*Visit, bool) {
	v, err := s.visit(w, r)
	switch {
	case err != nil:
		s.fail(w, v, p, err)
	case v.May(p.For):
		return v, true
	case v.LoggedIn():
		s.fail(w, v, p, Refuse(http.StatusForbidden, "", "this page is for the operator; log in with the root key"))
	default:
		s.askForLogin(w, v, p)
	}
	return nil, false
}

// get shows a page.
func (s *server) get(w http.ResponseWriter, r *http.Request, p Page) {
	v, ok := s.enter(w, r, p)
	if !ok {
		return
	}
	f := s.frame(w, v, p)
	if !v.IsRefresh() { // the message is for the page that a form leads to, not for another tab
		f.Message = s.takeMessage(w, r)
	}
	var err error
	if p.Common {
		var made common
		made, err = s.common(v, p)
		f.Data, f.common = made.data, made.html
	} else {
		f.Data, err = s.load(v, p)
	}
	if err != nil {
		s.fail(w, v, p, err)
		return
	}
	s.show(w, http.StatusOK, p.Template, f)
}

// A page's reads of the bus are bounded, because its panels wait for them in turn: more tightly
// while Redis does not answer, when nearly all of them would wait in vain.
const (
	loadTimeout     = 3 * time.Second
	loadTimeoutAway = 250 * time.Millisecond
)

// loadContext returns the context in which a visit reads from the bus.
func loadContext(v *Visit) (context.Context, context.CancelFunc) {
	if v.Figures.Redis != "" {
		return context.WithTimeout(v.Context(), loadTimeoutAway)
	}
	return context.WithTimeout(v.Context(), loadTimeout)
}

func (s *server) load(v *Visit, p Page) (any, error) {
	if p.Load == nil {
		return nil, nil
	}
	ctx, cancel := loadContext(v)
	defer cancel()
	loading := *v
	loading.Request = v.Request.WithContext(ctx)
	return p.Load(&loading)
}

// post submits the form of a page. It reads the form only after it knows the sender.
func (s *server) post(w http.ResponseWriter, r *http.Request, p Page) {
	v, ok := s.enter(w, r, p)
	if !ok {
		return
	}
	release, ok := s.readForm(w, r, p, maxForm)
	if !ok {
		return
	}
	defer release()
	f := s.frame(w, v, p)
	if !p.Personal && !f.MayChange {
		s.fail(w, v, p, Refuse(http.StatusForbidden, "", "nothing may be changed here: the console, or this login, only looks"))
		return
	}
	answer, err := p.Submit(v)
	switch {
	case err != nil:
		s.showAgain(w, f, err)
	case answer.Show != nil:
		f.Data = answer.Show
		s.show(w, http.StatusOK, p.Template, f)
	default:
		s.keepMessage(w, answer.Message)
		s.seeOther(w, p, answer)
	}
}

// showAgain shows a page whose form was refused. What cannot be shown again is shown as a problem.
func (s *server) showAgain(w http.ResponseWriter, f shownPage, err error) {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Status == http.StatusUnauthorized {
		s.fail(w, f.Visit, f.Page, err)
		return
	}
	data, loadErr := s.load(f.Visit, f.Page)
	if loadErr != nil {
		s.fail(w, f.Visit, f.Page, err)
		return
	}
	f.Data, f.Problem = data, refused
	s.show(w, refused.Status, f.Page.Template, f)
}

func (s *server) seeOther(w http.ResponseWriter, from Page, answer Answer) {
	to, err := Link(from.Path, answer.To, answer.Names...)
	if err != nil {
		panic(err) // the pattern and the names are the page's own
	}
	w.Header().Set("Location", to+answer.Query) // http.Redirect would make it absolute
	w.WriteHeader(http.StatusSeeOther)
}

// fail answers with why a page cannot be shown.
func (s *server) fail(w http.ResponseWriter, v *Visit, p Page, err error) {
	f := s.frame(w, v, p)
	f.Problem = s.problemOf(err, f)
	if f.Problem.Status == http.StatusUnauthorized {
		s.askForLogin(w, v, p)
		return
	}
	s.show(w, f.Problem.Status, problemView, f)
}

// problemOf is an error as pages show it.
func (s *server) problemOf(err error, f shownPage) *client.Error {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused
	}
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		s.Log.Error("page failed", "page", f.Page.Path, "request_id", f.RequestID, "error", err)
		return &client.Error{Status: http.StatusInternalServerError, Title: "Sessions are damaged", Detail: damaged.Error()}
	}
	status, detail := http.StatusInternalServerError, "the console failed; the log of web says why"
	if errors.Is(err, bus.ErrUnavailable) || client.IsTemporary(err) {
		status, detail = http.StatusServiceUnavailable, "Redis does not answer; try again in a moment"
	} else {
		s.Log.Error("page failed", "page", f.Page.Path, "request_id", f.RequestID, "error", err)
	}
	return &client.Error{Status: status, Title: http.StatusText(status), Detail: detail}
}

func isStatus(err error, status int) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == status
}
