package outbound

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// Request is a request to one address.
type Request struct {
	// Method is POST unless it is given.
	Method string
	// URL is where the request goes. Redirects are not followed.
	URL string
	// User and Password are sent by the Basic scheme, unless both are empty.
	User, Password string
	// Header is sent besides the client's own headers. The client takes it over.
	Header http.Header
	// Body returns the body from its beginning, once more if the request is sent again, because it has
	// not arrived. It is nil for a request without one.
	Body func() io.ReadCloser
	// Length is the length of the body in bytes, greater than 0 if there is one.
	Length int64
	// Timeout bounds the attempt, instead of the client's timeout.
	Timeout time.Duration
	// KeepBody, if given, is how many bytes of the response's body to keep for a status, up to 256
	// KiB. Reading the body of a 207 may take the rest of the attempt's time. Another body may take a
	// second, or the rest too if AwaitBody says that the caller wants the body itself.
	KeepBody  func(status int) int
	AwaitBody bool
	// Fresh makes the request use a new connection, so that it is never in doubt: see
	// Attempt.Doubtful.
	Fresh bool
	// Once is Fresh, and also never sends the request again, not even when the server says that it did
	// not act on it because it wants another version of HTTP.
	Once bool
}

// Attempt is the result of a request.
type Attempt struct {
	// Err says why the request was not acknowledged. It is nil after any status of 2xx.
	Err error
	// Error is the class of Err, one of the errors of attempts in bus, if there was no response.
	Error string
	// Status is the response's; 0 if there was none.
	Status int
	// Body is the beginning of the response's body, as far as [Request].KeepBody asked for it, after
	// gzip. BodyComplete is whether it is the whole body. If the body was asked for and is not
	// complete, BodyErr says why in words that follow "the body": it is too long, broke off or cannot
	// be decoded.
	Body         []byte
	BodyComplete bool
	BodyErr      error
	// Public is whether the address that was connected to is a public one ([bus.IsPublic]), or among
	// [Config].Trusted; without a connection, whether all dialled addresses are.
	Public bool
	// RetryAfter is how long the response asks the client to wait; 0 if it does not.
	RetryAfter time.Duration
	// Duration is the time of the attempt, including the reading of the response's body.
	Duration time.Duration
	// Reused is whether an idle connection was used, Connected whether a new one was made. Both are
	// true when the idle connection turned out to be closed.
	Reused, Connected bool
	// Doubtful is set if an idle connection was used and no byte came until the time was up: the
	// connection may be at fault, and not the endpoint. Connections to that host are not used again
	// for a minute. Try again before you count the failure against the endpoint: the next attempt
	// cannot be in doubt.
	Doubtful bool
	// OutOfFiles is set if no file descriptor was left for a connection, even if the second try
	// succeeded. It wraps EMFILE or ENFILE.
	OutOfFiles error
}

// Gone reports whether the endpoint answered 410 Gone.
func (a Attempt) Gone() bool { return a.Status == http.StatusGone }

// Failure returns the cause of the failure: the endpoint if there was no response, else by its
// status. It is 0 if the request was acknowledged.
func (a Attempt) Failure() bus.Failure {
	switch {
	case a.Err == nil:
		return 0
	case a.Status == 0:
		return bus.EndpointFailure
	}
	return bus.FailureOf(a.Status)
}

// minRetryAfter is the shortest time that a response may ask for in place of the caller's backoff.
const minRetryAfter = time.Second

// Wait returns how long to wait after the attempt, given the caller's own backoff: as long as the
// response asks for, at most longest. A response that asks for less than a second does not make the
// backoff shorter; otherwise an endpoint could make the bus call it without a pause.
func (a Attempt) Wait(backoff, longest time.Duration) time.Duration {
	asked := min(a.RetryAfter, longest)
	if asked < minRetryAfter {
		return max(asked, backoff)
	}
	return asked
}

// responded notes the response in an attempt.
func (a *Attempt) responded(resp *http.Response, now time.Time) {
	a.Status = resp.StatusCode
	if !isSuccess(resp.StatusCode) {
		a.Err = fmt.Errorf("the endpoint answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if a.Err != nil || resp.StatusCode == http.StatusMultiStatus {
		a.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), now)
	}
}

func isSuccess(status int) bool { return status/100 == 2 }

// parseRetryAfter reads a header of seconds, also with decimals, or a date (RFC 9110, section
// 10.2.3). A time that is out of range is the longest there is: callers bound it anyway. It is 0
// when the header is absent, is not understood, or names a time that has passed.
func parseRetryAfter(header string, now time.Time) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	if header != "" && strings.Trim(header, "0123456789.") == "" {
		switch seconds, err := strconv.ParseFloat(header, 64); {
		case seconds >= longest.Seconds(): // too many digits are an error, too
			return longest
		case err == nil:
			return time.Duration(seconds * float64(time.Second))
		}
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}
