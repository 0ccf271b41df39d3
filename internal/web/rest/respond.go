package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
)

// Fail responds with an error.
func (s *Service) Fail(w http.ResponseWriter, r *http.Request, err error) {
	left := context.Cause(r.Context())
	if left != nil && !errors.Is(left, ErrRefused) {
		return // the client has left: it reads no response, and nothing has failed
	}
	unknown := errors.Is(err, bus.ErrTokenUnknown) && !Caller(r).Root
	if left != nil || unknown || errors.Is(err, ErrRefused) { // the token was removed a moment ago
		s.challenge(w, r, ErrRefused)
		return
	}
	p, ok := problemOf(err)
	if !ok {
		s.Reporter.Error(telemetry.Often(s.Log, routeOf(r)), "request failed", err, requestFields(r)...)
	}
	p.Detail = fillCommands(r, p.Detail)
	writeProblem(w, r, p)
}

// advised are commands of rtm with parameters of a request's path: the fixed words, and the others.
var advised = regexp.MustCompile(`\x60rtm ([a-z ]+) (\{[^\x60]*)\x60`)

// fillCommands puts the parameters of a request's path into the commands of rtm that a text has.
func fillCommands(r *http.Request, text string) string {
	return advised.ReplaceAllStringFunc(text, func(command string) string {
		parts := advised.FindStringSubmatch(command)
		values := strings.Fields(parts[2])
		for i, word := range values {
			if name, isParam := strings.CutPrefix(strings.TrimSuffix(word, "}"), "{"); isParam {
				values[i] = chi.URLParam(r, name)
			}
		}
		return bus.Command(parts[1], values...)
	})
}

// retryAfter is how long clients are asked to wait after a 503 or a 429, in s.
const retryAfter = "1"

// writeProblem responds with a problem, and fills in its title, ID and instance.
func writeProblem(w http.ResponseWriter, r *http.Request, p Problem) {
	p.Title = http.StatusText(p.Status)
	p.ID = cmp.Or(p.ID, problemIDs[p.Status])
	p.Instance = cmp.Or(p.Instance, instanceOf(r))
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeBody(w, p.Status, p)
}

// WriteJSON responds with a value.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, value)
}

func writeBody(w http.ResponseWriter, status int, value any) {
	setHeaders(w.Header())
	w.WriteHeader(status)
	_ = newEncoder(w).Encode(value) // an error means that the client is gone
}

// setHeaders sets the headers of all answers in JSON. No cache may keep them: many have secrets
// such as tokens and uuids.
func setHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// newEncoder makes an encoder for responses.
func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // the response is not HTML, and conditions have < and >
	return encoder
}

// Respond responds with 204, or with an error.
func (s *Service) Respond(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// RespondJSON responds with 200 and a value, or with an error.
func (s *Service) RespondJSON(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	WriteJSON(w, http.StatusOK, value)
}

// NotFound responds to a path that has no route.
func NotFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, Problem{Status: http.StatusNotFound, Detail: "there is nothing at this path"})
}

// MethodNotAllowed responds to a path that has some of the routes, but none for the request's
// method.
func MethodNotAllowed(routes chi.Routes, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		NotFound(w, r)
		return
	}
	if allowed[0] == http.MethodGet {
		allowed = slices.Insert(allowed, 1, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, r, Problem{Status: http.StatusMethodNotAllowed, Detail: "this path takes " + strings.Join(allowed, ", ")})
}
