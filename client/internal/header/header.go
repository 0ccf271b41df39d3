// Package header reads headers of a bus's responses.
package header

import (
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// RetryAfter is how long a response asks to wait, in seconds, also with decimals, or until a time
// (RFC 9110, 10.2.3). A time that is out of range is the longest there is. It is 0 if the response
// does not ask, cannot be understood, or names a time that has passed.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	text := header.Get("Retry-After")
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		switch seconds, err := strconv.ParseFloat(text, 64); {
		case seconds >= longest.Seconds(): // too many digits are an error, too
			return longest
		case err == nil:
			return time.Duration(seconds * float64(time.Second))
		}
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
