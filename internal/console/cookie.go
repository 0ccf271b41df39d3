package console

import (
	"encoding/base64"
	"net/http"
	"time"
)

// sessionCookie makes the cookie of a session; it ends with the browser's session if the time is 0.
func (s *server) sessionCookie(value string, ttl time.Duration) *http.Cookie {
	return s.cookie("routemaster", value, int(ttl/time.Second))
}

// cookie makes a cookie that scripts cannot read. Over TLS its name has the prefix with which
// browsers take it from this host only. It is Lax, not Strict, so that links from elsewhere arrive
// logged in.
func (s *server) cookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: "/", MaxAge: maxAge, Secure: s.Secure, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}

func (s *server) cookieName(name string) string {
	if s.Secure {
		return "__Host-" + name
	}
	return name
}

// messageCookie carries a form's message to the next page.
const messageCookie = "routemaster_message"

func (s *server) keepMessage(w http.ResponseWriter, message string) {
	if message != "" {
		http.SetCookie(w, s.cookie(messageCookie, base64.RawURLEncoding.EncodeToString([]byte(message)), 60))
	}
}

// takeMessage returns the message of the form before this page; empty if there was none.
func (s *server) takeMessage(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(s.cookieName(messageCookie))
	if err != nil {
		return ""
	}
	http.SetCookie(w, s.cookie(messageCookie, "", -1))
	message, _ := base64.RawURLEncoding.DecodeString(cookie.Value)
	return string(message)
}
