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

// Error implements error, so that a handler's helpers can return a problem.
func (p *problem) Error() string { return p.Detail }

// problems are the errors of the packages below, as clients see them.
var problems = []struct {
	err     error
	problem problem
}{
	{bus.ErrTopicClaimed, problem{
		Status: http.StatusForbidden, Detail: "the topic is not this client's; only its publisher may do that",
	}},
	{bus.ErrIdempotencyKeyReused, problem{
		Status: http.StatusConflict,
		Detail: "another request was sent with this Idempotency-Key, which the bus still remembers; use a new key for a new request",
	}},
	{bus.ErrTokenTaken, problem{
		Status: http.StatusConflict, Pointer: "/token",
		Detail: "the token is another client's; send another, or none to have one made",
	}},
	{bus.ErrTooManyBatches, problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the events would open more than %d batches, as many for each of the topic's subscribers as its max asks for; "+
			"nothing was stored: send fewer events at once", bus.MaxOpenedBatches),
	}},
	{bus.ErrTopicUnknown, problem{
		Status: http.StatusNotFound, Detail: "there is no such topic; GET /topics lists them",
	}},
	{bus.ErrNotSubscribed, problem{
		Status: http.StatusNotFound, Detail: "you are not subscribed to that; GET /subscriptions lists your subscriptions",
	}},
	{bus.ErrOverloaded, problem{
		Status: http.StatusServiceUnavailable,
		Detail: "more events come in than can be stored; nothing of this request was stored: send it again later",
	}},
	{bus.ErrUnavailable, problem{
		Status: http.StatusServiceUnavailable,
		Detail: "the bus cannot reach its storage; nothing is known to be stored: send the request again later",
	}},
}

var internalError = problem{Status: http.StatusInternalServerError, Detail: "an error in the bus; it has been logged"}

// problemOf returns an error as clients see it. It is not ok when the error is not expected to
// reach clients; then the problem is internalError.
func problemOf(err error) (p problem, ok bool) {
	if p, ok := errors.AsType[*problem](err); ok {
		return *p, true
	}
	if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
		return problem{Status: http.StatusBadRequest, Detail: invalid.Detail, Pointer: invalid.Pointer}, true
	}
	if limit, ok := errors.AsType[*bus.TopicLimitError](err); ok {
		return problem{Status: http.StatusConflict, Detail: limit.Error()}, true
	}
	for _, known := range problems {
		if errors.Is(err, known.err) {
			return known.problem, true
		}
	}
	return internalError, false
}

// fail responds with an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has left: nobody reads a response, and nothing has failed
	}
	if errors.Is(err, bus.ErrTokenUnknown) { // it was removed a moment ago
		a.challenge(w, auth.ErrRefused)
		return
	}
	p, ok := problemOf(err)
	if !ok {
		a.config.Reporter.Error(a.log, "request failed", err, requestFields(r)...)
	}
	writeProblem(w, p)
}

// retryAfter is how long clients are asked to wait after a 503, in s.
const retryAfter = "1"

// writeProblem responds with a problem, and fills in its title.
func writeProblem(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeBody(w, p.Status, p)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, value)
}

func writeBody(w http.ResponseWriter, status int, value any) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // an error means that the client is gone
}

// respond responds with 204, or with an error.
func (a *API) respond(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// respondJSON responds with 200 and a value, or with an error.
func (a *API) respondJSON(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, value)
}

// notFound responds to a path that has no route.
func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, problem{Status: http.StatusNotFound, Detail: "there is nothing at this path"})
}

// methodNotAllowed responds to a path that has routes, but not for the request's method.
func (a *API) methodNotAllowed(routes chi.Routes, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		a.notFound(w, r)
		return
	}
	if allowed[0] == http.MethodGet {
		allowed = slices.Insert(allowed, 1, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Detail: "this path takes " + strings.Join(allowed, ", ")})
}
