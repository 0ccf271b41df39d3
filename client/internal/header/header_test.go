package header

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRetryAfter reads what buses and the proxies before them send.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	const longest = time.Duration(math.MaxInt64)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "007": 7 * time.Second,
		"0.5": 500 * time.Millisecond, "1.25": 1250 * time.Millisecond, "2.": 2 * time.Second,
		"2147483648": 2147483648 * time.Second, "4294967296": 4294967296 * time.Second,
		"9999999999": longest, strings.Repeat("9", 400): longest,
		"-1": 0, "1e3": 0, "soon": 0, ".": 0, "1.2.3": 0, "inf": 0, "NaN": 0,
		"Sat, 28 Nov 2026 08:01:00 GMT": time.Minute, "Sat, 28 Nov 2026 07:59:00 GMT": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT": longest,
	} {
		assert.Equal(t, want, RetryAfter(http.Header{"Retry-After": {text}}, now), text)
	}
	assert.Zero(t, RetryAfter(http.Header{}, now))
}
