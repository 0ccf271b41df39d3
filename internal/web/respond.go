package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/web/auth"
)

// problem is an error as clients see it (RFC 9457). Detail says what to change; Pointer is the JSON
// pointer of the field at fault, if it is one field.
type problem struct {
	Status  int    `json:"status"`
	Title   string `json:"title"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

func writeProblem(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	writeBody(w, p.Status, p)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, value)
}

func writeBody(w http.ResponseWriter, status int, value any) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the peer is gone: nobody to tell
}

// answer answers 204, or with an error.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// answerJSON answers 200 with a value, or with an error.
func (s *Server) respondJSON(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, value)
}

// retryAfter is what clients are told to wait when Redis is away, in s.
const retryAfter = "1"

// fail answers with an error. It is the one place where errors become statuses.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has left: nobody reads an answer, and nothing failed
	}
	var p *problem
	var invalid *bus.Invalid
	var limit *bus.TopicLimitError
	switch {
	case errors.As(err, &p):
		writeProblem(w, *p)
	case errors.As(err, &invalid):
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: invalid.Detail, Pointer: invalid.Pointer})
	case errors.Is(err, bus.ErrTokenUnknown): // it was removed a moment ago
		s.challenge(w, auth.ErrRefused)
	case errors.Is(err, bus.ErrTopicClaimed):
		writeProblem(w, problem{Status: http.StatusForbidden, Detail: "the topic is not this client's; only its publisher may do that"})
	case errors.Is(err, bus.ErrIdempotencyKeyReused):
		writeProblem(w, problem{Status: http.StatusConflict, Detail: "another request was sent with this Idempotency-Key, which the bus still remembers; use a new key for a new request"})
	case errors.Is(err, bus.ErrTokenTaken):
		writeProblem(w, problem{Status: http.StatusConflict, Detail: "the token is another client's; send another, or none to have one made", Pointer: "/token"})
	case errors.Is(err, bus.ErrTooManyBatches):
		writeProblem(w, problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf(
			"the events would open more than %d batches, as many for each of the topic's subscribers as its max asks for; nothing was stored: send fewer events at once",
			bus.MaxOpenedBatches)})
	case errors.As(err, &limit):
		writeProblem(w, problem{Status: http.StatusConflict, Detail: limit.Error()})
	case errors.Is(err, bus.ErrTopicUnknown):
		writeProblem(w, problem{Status: http.StatusNotFound, Detail: "there is no such topic; GET /topics lists them"})
	case errors.Is(err, bus.ErrNotSubscribed):
		writeProblem(w, problem{Status: http.StatusNotFound, Detail: "you are not subscribed to that; GET /subscriptions lists your subscriptions"})
	case errors.Is(err, bus.ErrOverloaded):
		w.Header().Set("Retry-After", retryAfter)
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Detail: "more events come in than can be stored; nothing of this request was stored: send it again later"})
	case errors.Is(err, bus.ErrUnavailable):
		w.Header().Set("Retry-After", retryAfter)
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Detail: "the bus cannot reach its storage; nothing is known to be stored: send the request again later"})
	default:
		s.config.Reporter.Error(s.log, "a request failed", err, requestFields(r)...)
		writeProblem(w, problem{Status: http.StatusInternalServerError, Detail: "an error in the bus; it has been logged"})
	}
}

// refuseBody says that a body was not read, and closes the connection: to read the rest would take as
// much as to serve the next request.
func refuseBody(w http.ResponseWriter) error {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", retryAfter)
	return &problem{
		Status: http.StatusServiceUnavailable,
		Detail: "the bodies of other requests take all the memory that they may; nothing of this request was stored: send it again later",
	}
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, problem{Status: http.StatusNotFound, Detail: "there is nothing at this path"})
}

func (s *Server) methodNotAllowed(routes chi.Routes, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.notFound(w, r)
		return
	}
	if allowed[0] == http.MethodGet {
		allowed = slices.Insert(allowed, 1, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Detail: "this path takes " + strings.Join(allowed, ", ")})
}
