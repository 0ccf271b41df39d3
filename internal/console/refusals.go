package console

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// maxDepth is how many slashes the path of a page that is not there may have, from the console on.
const maxDepth = 8

// below returns the path of a request, relative to the console and as the browser sent it: relative
// links depend on its slashes.
func below(r *http.Request) string {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	_, rest, found := strings.Cut(sent, root)
	if !found {
		return strings.TrimPrefix(r.URL.Path, root)
	}
	return rest
}

// nowhere is the page at a path that has none.
func nowhere(r *http.Request) Page { return Page{Path: below(r)} }

// notFound answers for paths that no page has.
func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	v, err := s.visit(w, r)
	if err != nil {
		v = s.stranger(w, r)
	}
	s.fail(w, v, nowhere(r), Refuse(http.StatusNotFound, "", "There is no such page of the console."))
}

// refuseCrossOrigin answers a form that another site has sent, whether or not the visitor is logged
// in.
func (s *server) refuseCrossOrigin(w http.ResponseWriter, r *http.Request) {
	v := &Visit{Request: r, Header: w.Header(), Display: DisplayOf(nil), Secure: s.Secure, Now: s.Now}
	s.fail(w, v, nowhere(r), Refuse(http.StatusForbidden, "", "This was sent by another site, so nothing was done."))
}

// slotHolder stands for the sender of a form where the bodies are counted: its address, since it
// may not have logged in. No client's name begins with a space.
func slotHolder(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return " " + host
}

// readForm reads the form of a request, of at most maxBytes. It answers one that cannot be read
// with a refusal, and then ok is false. Otherwise the caller must release the form, which counts
// against the memory budget until then.
func (s *server) readForm(w http.ResponseWriter, r *http.Request, p Page, maxBytes int64) (release func(), ok bool) {
	from := slotHolder(r)
	text, err := s.Bodies.Read(from, http.MaxBytesReader(w, r.Body, maxBytes))
	r.Body = http.NoBody
	var refusal error
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		refusal = Refuse(http.StatusRequestEntityTooLarge, "",
			fmt.Sprintf("The form has more than %d KiB, so nothing was done.", maxBytes>>10))
	} else if err != nil {
		w.Header().Set("Connection", "close") // the rest would take as much as another form
		refusal = Refuse(http.StatusServiceUnavailable, "",
			"The form did not arrive whole, or other requests take all the memory; nothing was done. Send it again.")
	} else {
		r.PostForm = url.Values{}
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
			r.PostForm, err = url.ParseQuery(string(text))
		}
		if err == nil {
			err = r.ParseForm() // of the query
		}
		release = func() { s.Bodies.Release(from, text) }
		if err == nil {
			return release, true
		}
		release()
		refusal = Refuse(http.StatusBadRequest, "", "The form could not be read, so nothing was done.")
	}
	s.fail(w, s.stranger(w, r), p, refusal)
	return nil, false
}

// withoutEmptyNames leads from paths with empty names, such as /console//topics, to those without.
// The mux would lead to an absolute path, which is another one before a proxy.
func withoutEmptyNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest := strings.TrimPrefix(r.URL.Path, root)
		clean := strings.TrimPrefix(path.Clean("/"+rest), "/")
		if strings.HasSuffix(rest, "/") && clean != "" {
			clean += "/"
		}
		if clean == rest {
			next.ServeHTTP(w, r)
			return
		}
		to := url.URL{Path: clean, RawQuery: r.URL.RawQuery}
		w.Header().Set("Location", AtRoot(below(r))+to.String())
		w.WriteHeader(http.StatusPermanentRedirect)
	})
}
