package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"routemaster/client/internal/header"
)

// Error is a response of the bus that is not 2xx. Find it with [errors.As].
type Error struct {
	// Status is the HTTP status: 400 for an invalid request, 401 for an unknown token, 403 if this
	// client may not do it, 404, 409 for an idempotency key that was used for another request or a
	// token of another client, 413, 503.
	Status int
	// ID is the kind of error, such as "job_type_not_found", for programs to go by. It is empty if
	// the response is not from a bus.
	ID string
	// Title is the status in words. Detail says what to change, without control characters; it is
	// empty if the response is not from a bus.
	Title, Detail string
	// Pointer is the JSON pointer of the request's field at fault, if it is one field.
	Pointer string
	// RetryAfter is how long the bus asks to wait, 0 if it does not.
	RetryAfter time.Duration
	// Faults are all errors of a text with several, such as definitions of state machines. States
	// lists the states that definitions would remove while labels are in them.
	Faults []Fault
	States []StateLabels
}

func (e *Error) Error() string {
	text := strconv.Itoa(e.Status) + " " + e.Title
	if e.Pointer != "" {
		text += ": " + e.Pointer
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// maxProblem is how many bytes of an error's body are read at most.
const maxProblem = 64 << 10

// readError reads a response that is not 2xx. It takes over the text of a bus only.
func readError(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode}
	var text []byte
	if e.Status != http.StatusSwitchingProtocols { // another protocol follows, not a body
		text, _ = io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	}
	p := readProblem(resp.Header.Get("Content-Type"), text)
	e.ID, e.Title, e.Detail, e.Pointer, e.Faults, e.States = p.ID, p.Title, p.Detail, p.Pointer, p.Errors, p.States
	e.Title = cmp.Or(e.Title, http.StatusText(e.Status), "unknown status")
	if e.Status/100 == 3 {
		e.Detail = "redirected to where the token must not be sent; give the bus's own https URL"
	}
	e.RetryAfter = header.RetryAfter(resp.Header, time.Now())
	return e
}

// connectionError is a request without a response.
type connectionError struct{ error }

func (e *connectionError) Unwrap() error { return e.error }

// RedirectError is a redirect that was followed to an address that does not respond, or not with
// TLS.
type RedirectError struct {
	// Status is the HTTP status of the redirect.
	Status int
	// To is the scheme and the host that it led to.
	To string
	// Err is the error of the redirected request.
	Err error
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("redirected (%d %s) to %s: %v", e.Status, http.StatusText(e.Status), e.To, e.Err)
}

// Unwrap returns Err.
func (e *RedirectError) Unwrap() error { return e.Err }

// IsTemporary reports whether the same request may succeed later: there was no response, or the bus
// or a proxy responded 429, 502, 503 or 504.
func IsTemporary(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		switch refused.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	_, unreached := errors.AsType[*connectionError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return unreached && !untrusted && !errors.Is(err, http.ErrSchemeMismatch)
}
