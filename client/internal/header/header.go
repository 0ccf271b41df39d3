// Package header reads headers of a bus's responses.
package header

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// RetryAfter is how long a response asks to wait, in seconds or until a time (RFC 9110, 10.2.3); 0
// if it does not.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// nextLink matches a Link header of the bus that leads to the next page (RFC 8288).
var nextLink = regexp.MustCompile(`^<([^<>]*)>; *rel="next"$`)

// Next is the value of a parameter that the request for the next page of a list has to send. It is
// empty on the last page.
func Next(header http.Header, parameter string) string {
	match := nextLink.FindStringSubmatch(header.Get("Link"))
	if match == nil {
		return ""
	}
	link, err := url.Parse(match[1])
	if err != nil {
		return ""
	}
	return link.Query().Get(parameter)
}
