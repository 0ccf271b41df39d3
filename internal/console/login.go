package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"routemaster/internal/bus"
)

const (
	// refusalDelay is how long the answer to a wrong login takes.
	refusalDelay = 300 * time.Millisecond
	// failedLoginsInterval is the pause between two lines of the log about failed logins.
	failedLoginsInterval = time.Minute
	// maxPerson is how many bytes a person's name may have.
	maxPerson = 64
)

// loginPage is the login page.
var loginPage = Page{Path: "login", Template: loginView}

func (s *server) getLogin(w http.ResponseWriter, r *http.Request) {
	f := s.frame(w, s.stranger(w, r), loginPage)
	f.Next = safeNext(f.Query("next"))
	s.show(w, http.StatusOK, loginView, f)
}

// askForLogin answers in place of a page with a form to log in, which leads back to it. The
// challenge is one that no browser asks for a password for.
func (s *server) askForLogin(w http.ResponseWriter, v *Visit, p Page) {
	v.Visitor = Visitor{}
	f := s.frame(w, v, p)
	f.Next = safeNext(strings.TrimPrefix(v.Request.URL.RequestURI(), root))
	w.Header().Set("WWW-Authenticate", "Cookie")
	s.show(w, http.StatusUnauthorized, loginView, f)
}

// postLogin checks the secret first: only wrong guesses are slowed down, so guessing cannot lock
// out a visitor with a valid secret.
func (s *server) postLogin(w http.ResponseWriter, r *http.Request) {
	release, ok := s.readForm(w, r, loginPage, maxLogin)
	if !ok {
		return
	}
	defer release()
	if code := r.PostFormValue("code"); code != "" {
		s.postCode(w, r, code)
		return
	}
	secret := r.PostFormValue("secret")
	c := s.bus(w, r, secret, "")
	if c == nil { // it is empty
		s.refuseLogin(w, r, Refuse(http.StatusUnauthorized, "/secret", "enter a token, or the root key"))
		return
	}
	who, err := whoAmI(r, c)
	if isStatus(err, http.StatusUnauthorized) || err == nil && !s.isWhole(w, r, who, secret) {
		err = s.slowDown(w, r)
	}
	if err != nil {
		s.refuseLogin(w, r, err)
		return
	}
	s.begin(w, r, who, Session{
		Token: bus.Token(secret), Person: r.PostFormValue("person"), LookOnly: r.PostFormValue("look_only") != "",
	})
}

// postCode logs in with a code that a script of the login page has sent. Another person may have
// made the code's link, so the next page shows the login's name.
func (s *server) postCode(w http.ResponseWriter, r *http.Request, code string) {
	made, err := s.Sessions.TakeCode(r.Context(), code)
	var who caller
	if err == nil {
		who, err = whoAmI(r, s.bus(w, r, s.secret(made), ""))
	}
	if errors.Is(err, ErrNone) || isStatus(err, http.StatusUnauthorized) {
		if err = s.slowDown(w, r); isStatus(err, http.StatusUnauthorized) {
			err = Refuse(http.StatusUnauthorized, "", "this link is good once, for a minute: it was used, or it is too old")
		}
	}
	if err != nil {
		s.refuseLogin(w, r, err)
		return
	}
	s.keepMessage(w, "The link has logged you in as "+who.Client+".")
	s.begin(w, r, who, made)
}

// isWhole is whether a secret that the bus takes is a token, or the root key, to its end. The bus
// also takes one with more behind a colon, which would be kept with the session.
func (s *server) isWhole(w http.ResponseWriter, r *http.Request, who caller, secret string) bool {
	if who.Root {
		return secret == s.RootKey
	}
	colon := strings.LastIndexByte(secret, ':')
	if colon < 1 {
		return true
	}
	_, err := whoAmI(r, s.bus(w, r, secret[:colon], ""))
	return isStatus(err, http.StatusUnauthorized)
}

// slowDown delays a wrong login, and returns its refusal.
func (s *server) slowDown(w http.ResponseWriter, r *http.Request) error {
	s.failed.add(s.Log, s.Now())
	if s.Guesses.Wait(r.Context(), r.RemoteAddr) != nil {
		w.Header().Set("Retry-After", "2")
		return Refuse(http.StatusTooManyRequests, "", "too many wrong logins at once; try again in a moment")
	}
	loginPause(r.Context(), refusalDelay)
	return Refuse(http.StatusUnauthorized, "/secret", "this is neither a token of a client nor the root key")
}

// begin begins the session of a caller, in place of the browser's current one.
func (s *server) begin(w http.ResponseWriter, r *http.Request, who caller, made Session) {
	made.Client, made.Person, made.From = who.Client, personOf(made.Person), sourceOf(r)
	if who.Root {
		made.Token = ""
	}
	cookie, err := s.Sessions.Begin(r.Context(), made)
	if err != nil {
		s.refuseLogin(w, r, err)
		return
	}
	if before, err := r.Cookie(s.cookieName("routemaster")); err == nil {
		_ = s.Sessions.End(r.Context(), before.Value) // else it ends by itself
	}
	s.Log.Info("logged in to the console", "client", made.Client, "person", made.Person, "look_only", made.LookOnly, "from", made.From)
	http.SetCookie(w, s.sessionCookie(cookie, made.TTL()))
	w.Header().Set("Location", AtRoot(loginPage.Path)+safeNext(r.PostFormValue("next")))
	w.WriteHeader(http.StatusSeeOther)
}

// refuseLogin shows the form again.
func (s *server) refuseLogin(w http.ResponseWriter, r *http.Request, err error) {
	f := s.frame(w, s.stranger(w, r), loginPage)
	f.Problem, f.Next = s.problemOf(err, f), safeNext(r.PostFormValue("next"))
	if f.Problem.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Cookie")
	}
	s.show(w, f.Problem.Status, loginView, f)
}

func (s *server) postLogout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(s.cookieName("routemaster")); err == nil {
		if err := s.Sessions.End(r.Context(), cookie.Value); err != nil {
			s.refuseLogin(w, r, err) // the cookie would still be good
			return
		}
	}
	http.SetCookie(w, s.cookie("routemaster", "", -1))
	w.Header().Set("Location", "login")
	w.WriteHeader(http.StatusSeeOther)
}

// safeNext is a path of the console to go to after a login; empty, which is the overview, unless it
// is one.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Fragment != "" ||
		strings.HasPrefix(path.Clean(u.Path), "/") || strings.HasPrefix(path.Clean(u.Path), "..") || strings.Contains(next, `\`) {
		return ""
	}
	return next
}

// personOf returns a person's name as it was typed, without unprintable characters.
func personOf(typed string) string {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, typed))
	for len(name) > maxPerson {
		name = strings.TrimRightFunc(name[:len(name)-1], func(r rune) bool { return r == unicode.ReplacementChar })
	}
	return name
}

// loginPause waits, unless the context is done before.
func loginPause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// failedLogins logs failed logins: one line a minute, with how many there were since the one
// before.
type failedLogins struct {
	mu     sync.Mutex
	count  int
	logged time.Time
}

func (f *failedLogins) add(log *slog.Logger, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if now.Sub(f.logged) >= failedLoginsInterval {
		log.Warn("logins to the console failed", "count", f.count)
		f.count, f.logged = 0, now
	}
}
