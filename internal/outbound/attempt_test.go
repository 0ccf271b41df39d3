package outbound

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestAWaitIsNotShortened(t *testing.T) {
	const longest = time.Minute
	for _, c := range [][3]time.Duration{ // asked, backoff, want
		{0, 200 * time.Millisecond, 200 * time.Millisecond},
		{time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond},
		{500 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond},
		{500 * time.Millisecond, 8 * time.Second, 8 * time.Second},
		{time.Second, 8 * time.Second, time.Second},
		{time.Hour, 8 * time.Second, longest},
	} {
		assert.Equal(t, c[2], Attempt{RetryAfter: c[0]}.Wait(c[1], longest), c)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                               0,
		"0":                              0,
		"7":                              7 * time.Second,
		"61":                             61 * time.Second,
		"2147483647":                     2147483647 * time.Second,
		"4294967296":                     4294967296 * time.Second,
		"99999999999":                    1<<63 - 1,
		strings.Repeat("9", 400):         1<<63 - 1,
		"-1":                             0,
		"1.5":                            1500 * time.Millisecond,
		"0.25":                           250 * time.Millisecond,
		"1.2.3":                          0,
		".":                              0,
		"1e9":                            0,
		"0x10":                           0,
		"Inf":                            0,
		"soon":                           0,
		"Fri, 20 Nov 2026 12:00:09 GMT":  9 * time.Second,
		"Fri, 20 Nov 2026 11:59:00 GMT":  0,
		"Fri, 20 Nov 2026 13:00:00 GMT":  time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT":  1<<63 - 1,
		"Friday, 20-Nov-26 12:00:09 GMT": 9 * time.Second,
	} {
		assert.Equal(t, want, parseRetryAfter(header, now), header)
	}
}

func TestAnAnswerDecides(t *testing.T) {
	for _, c := range []struct {
		status  int
		failure bus.Failure
		gone    bool
	}{
		{200, 0, false},
		{204, 0, false},
		{299, 0, false},
		{101, bus.EndpointFailure, false},
		{302, bus.EndpointFailure, false},
		{400, bus.BatchFailure, false},
		{401, bus.EndpointFailure, false},
		{410, bus.EndpointFailure, true},
		{429, bus.EndpointFailure, false},
		{500, bus.BatchFailure, false},
		{503, bus.EndpointFailure, false},
	} {
		var a Attempt
		a.responded(&http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {"7"}}}, time.Now())
		assert.Equal(t, c.status, a.Status)
		assert.Equal(t, c.failure, a.Failure(), "%d", c.status)
		assert.Equal(t, c.gone, a.Gone(), "%d", c.status)
		if c.failure == 0 {
			assert.NoError(t, a.Err, "%d", c.status)
			assert.Zero(t, a.RetryAfter, "an acknowledgement asks for nothing")
		} else {
			assert.ErrorContains(t, a.Err, "the endpoint answered")
			assert.Equal(t, 7*time.Second, a.RetryAfter)
		}
	}
	assert.Equal(t, bus.EndpointFailure, Attempt{Err: errors.New("connection refused")}.Failure())
}
