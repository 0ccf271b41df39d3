package bus_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// pointerOf is where an [bus.Invalid] points; "valid" for no error.
func pointerOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "valid"
	}
	var invalid *bus.Invalid
	require.ErrorAs(t, err, &invalid)
	require.NotEmpty(t, invalid.Detail)
	return invalid.Pointer
}

func TestNames(t *testing.T) {
	for name, valid := range map[bus.TopicName]bool{
		"widgets": true, "_": true, bus.TopicName(strings.Repeat("a", 64)): true,
		"": false, "Widgets": false, "a1": false, "a\nb": false, "a\n": false, bus.TopicName(strings.Repeat("a", 65)): false,
	} {
		assert.Equal(t, valid, name.Validate() == nil, "%q", name)
	}
	for token, valid := range map[bus.Token]bool{
		"a": true, "a-b_c:9": true, bus.Token(strings.Repeat("a", 64)): true,
		"": false, "A": false, "a b": false, "a\n": false, bus.Token(strings.Repeat("a", 65)): false,
	} {
		assert.Equal(t, valid, token.Validate() == nil, "%q", token)
	}
	require.NoError(t, bus.ClientName("a-service").Validate())
	require.Error(t, bus.RootName.Validate())
	require.Error(t, bus.ClientName("a service").Validate())
}

func TestNewToken(t *testing.T) {
	token, err := bus.NewToken("a-service")
	require.NoError(t, err)
	assert.Regexp(t, `^a-service--[0-9a-f]{32}$`, token)
	other, err := bus.NewToken("a-service")
	require.NoError(t, err)
	assert.NotEqual(t, token, other)

	longest := bus.ClientName(strings.Repeat("a", 30))
	token, err = bus.NewToken(longest)
	require.NoError(t, err)
	require.NoError(t, token.Validate())
	_, err = bus.NewToken(longest + "a")
	require.Error(t, err)
}

func TestLegacyClientName(t *testing.T) {
	for _, token := range []bus.Token{"orders--6f1d6311", "6f1d6311", "--6f1d6311", "root--6f1d6311"} {
		name := bus.LegacyClientName(token)
		assert.Equal(t, name, bus.PublicName(token, ""), "no part of the token is shown")
		assert.Regexp(t, `^client-[0-9a-f]{8}$`, name)
		assert.Equal(t, name, bus.LegacyClientName(token))
	}
}

func TestUIDs(t *testing.T) {
	assert.Regexp(t, `^[A-Za-z0-9_-]{20}$`, bus.NewWorkerID())
	assert.NotEqual(t, bus.NewWorkerID(), bus.NewWorkerID())
	assert.Len(t, bus.NewBatchSeed(), bus.BatchSeedLen)
	for range 2_000 { // one of 64 would begin with a hyphen
		require.NotEqual(t, byte('-'), bus.NewBatchID()[0])
	}
}

func TestEventValidate(t *testing.T) {
	const ok = "https://example.com/1"
	for _, c := range []struct {
		kind    bus.EventType
		url     string
		pointer string
	}{
		{bus.Create, ok, "valid"}, {bus.Update, ok, "valid"}, {bus.Delete, ok, "valid"}, {bus.Noop, ok, "valid"},
		{"", ok, "/type"}, {"Create", ok, "/type"}, {"created", ok, "/type"},
		{bus.Noop, "https://example.com/a?b=c#d", "valid"},
		{bus.Noop, "https://[::1]:8443/", "valid"},
		{bus.Noop, "https://e.com/" + strings.Repeat("a", bus.MaxURLLen-14), "valid"},
		{bus.Noop, "https://e.com/" + strings.Repeat("a", bus.MaxURLLen-13), "/url"},
		{bus.Noop, "", "/url"}, {bus.Noop, "https://", "/url"}, {bus.Noop, "https:///x", "/url"}, {bus.Noop, "/x", "/url"},
		{bus.Noop, "http://example.com/", "/url"}, {bus.Noop, "https://example.com/a b", "/url"},
		{bus.Noop, "https://example.com/é", "/url"}, {bus.Noop, "https://example.com/\n", "/url"}, {bus.Noop, "https://%zz/", "/url"},
		{bus.Noop, "https://e.com:0/", "/url"}, {bus.Noop, "https://e.com:65536/", "/url"}, {bus.Noop, "https://e.com:/", "/url"},
	} {
		event := bus.Event{Topic: "t", Type: c.kind, URL: c.url}
		assert.Equal(t, c.pointer, pointerOf(t, event.Validate()), "%s %s", c.kind, c.url)
	}
}

func TestSubscriptionNormalize(t *testing.T) {
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	period := func(d time.Duration) *time.Duration { return &d }
	for pointer, changes := range map[string][]func(*bus.Subscription){
		"valid": {
			func(*bus.Subscription) {},
			func(s *bus.Subscription) { s.Topics = nil },
			func(s *bus.Subscription) { s.UUID = text("") },
			func(s *bus.Subscription) { s.UUID = text("demo-ü") },
			func(s *bus.Subscription) { s.Timeout = period(0) },
			func(s *bus.Subscription) { s.Timeout = period(time.Hour) },
			func(s *bus.Subscription) { s.MaxEvents = number(1) },
			func(s *bus.Subscription) { s.MaxEvents = number(10_000) },
		},
		"/topics/1": {func(s *bus.Subscription) { s.Topics = []bus.TopicName{"a", "B"} }},
		"/callback": {
			func(s *bus.Subscription) { s.Callback = "" },
			func(s *bus.Subscription) { s.Callback = "http://a.example/" },
			func(s *bus.Subscription) { s.Callback = "https://a.example/?x=1" },
			func(s *bus.Subscription) { s.Callback = "https://a.example/?" },
			func(s *bus.Subscription) { s.Callback = "https://a.example/#x" },
			func(s *bus.Subscription) { s.Callback = "https://a.example/#" },
			func(s *bus.Subscription) { s.Callback = "https://u:p@127.0.0.1/" },
			func(s *bus.Subscription) { s.Callback = "https://u:p@/" },
			func(s *bus.Subscription) { s.Callback = "https://u:p@:8443/" },
			func(s *bus.Subscription) { s.Callback = "https://[::ffff:127.0.0.1]/" },
			func(s *bus.Subscription) { s.Callback = "https://localhost:8443/" },
		},
		"/uuid": {
			func(s *bus.Subscription) { s.UUID = text("a:b") },
			func(s *bus.Subscription) { s.UUID = text("a\nb") },
			func(s *bus.Subscription) { s.UUID = text(strings.Repeat("a", 257)) },
		},
		"/timeout": {
			func(s *bus.Subscription) { s.Timeout = period(-time.Millisecond) },
			func(s *bus.Subscription) { s.Timeout = period(time.Hour + time.Millisecond) },
		},
		"/max": {
			func(s *bus.Subscription) { s.MaxEvents = number(0) },
			func(s *bus.Subscription) { s.MaxEvents = number(10_001) },
		},
	} {
		for i, change := range changes {
			sub := bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://a.example/x"}
			change(&sub)
			assert.Equal(t, pointer, pointerOf(t, sub.Normalize(deny)), "%s %d", pointer, i)
		}
	}
}

func TestACallbackLosesItsUserName(t *testing.T) {
	for callback, want := range map[string]string{
		"https://a.example":                         "https://a.example",
		"https://demo@a.example":                    "https://a.example",
		"https://demo:@a.example:8443/x":            "https://a.example:8443/x",
		"HTTPS://u:p@A.example/%7Euser//y@z/":       "HTTPS://A.example/%7Euser//y@z/",
		"https://a.example/y@z":                     "https://a.example/y@z",
		"https://@[2001:db8::1]:1/":                 "https://[2001:db8::1]:1/",
		"https://shop--9f86d081884c7d65@a.example/": "https://a.example/",
	} {
		sub := bus.Subscription{Callback: callback}
		require.NoError(t, sub.Normalize(bus.DenyList{}), callback)
		assert.Equal(t, want, sub.Callback)
	}
}

func TestAtReturnsOtherErrorsUnchanged(t *testing.T) {
	other := errors.New("other")
	assert.Equal(t, other, bus.At("/x", other))
	require.NoError(t, bus.At("/x", nil))
	assert.EqualError(t, bus.At("/x", bus.Invalidf("/y", "must be %d", 1)), "/x/y: must be 1")
}

func TestHealth(t *testing.T) {
	for _, c := range []struct{ before, points, after int }{{100, 1, 100}, {100, -2, 98}, {1, -2, 0}, {0, 1, 1}, {50, -100, 0}} {
		assert.Equal(t, c.after, bus.Health(c.before, c.points))
	}
}

func TestThrottle(t *testing.T) {
	for after, want := range map[int]time.Duration{
		-1: time.Minute, 0: time.Minute, 1: 30 * time.Second, 2: 15 * time.Second, 6: 937_500 * time.Microsecond,
		10: 200 * time.Millisecond, 98: 200 * time.Millisecond,
	} {
		assert.Equal(t, want, bus.Throttle(bus.Failing, 99, after, time.Minute), "health %d", after)
	}
	assert.Equal(t, 200*time.Millisecond, bus.Throttle(bus.Proven, 1, 0, time.Minute), "the first failure after a success")
	assert.Equal(t, time.Minute, bus.Throttle(bus.Untried, 1, 0, time.Minute))
	assert.Zero(t, bus.Throttle(bus.Failing, 100, 98, time.Minute), "one failure now and then")
	assert.Equal(t, 58_593_750*time.Nanosecond, bus.Throttle(bus.Failing, 100, 10, time.Minute))
	assert.Equal(t, 100*time.Millisecond, bus.Throttle(bus.Failing, 50, 48, 100*time.Millisecond))
}

func TestFailureOf(t *testing.T) {
	for status, want := range map[bus.Failure][]int{
		bus.EndpointFailure: {100, 101, 199, 300, 301, 304, 308, 399, 401, 403, 404, 405, 407, 408, 410, 421, 425, 429, 502, 503, 504, 599, 999},
		bus.BatchFailure:    {400, 402, 406, 409, 411, 413, 415, 418, 422, 428, 431, 451, 499, 500, 501},
	} {
		for _, code := range want {
			assert.Equal(t, status, bus.FailureOf(code), "%d", code)
		}
	}
}

func TestRefusalThrottle(t *testing.T) {
	const limit = time.Minute
	for _, c := range []struct {
		refusals     int
		period, want time.Duration
	}{
		{99, time.Hour, 0}, {1_000_000, 999 * time.Millisecond, 0}, {100, time.Second, 100 * time.Millisecond},
		{100, 2 * time.Second, 200 * time.Millisecond}, {100, 5 * time.Minute, 30 * time.Second}, {100, time.Hour, limit},
	} {
		assert.Equal(t, c.want, bus.RefusalThrottle(c.refusals, c.period, limit), "%+v", c)
	}
	assert.Equal(t, 50*time.Millisecond, bus.RefusalThrottle(100, time.Second, 50*time.Millisecond))
}

func TestBackoff(t *testing.T) {
	const limit = time.Minute
	for attempts, want := range map[int]time.Duration{
		0: 200 * time.Millisecond, 1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 3: 800 * time.Millisecond,
		9: 51200 * time.Millisecond, 10: limit, 11: limit, 1_000_000_000: limit,
	} {
		assert.Equal(t, want, bus.Backoff(attempts, limit, 0), "%d attempts", attempts)
		assert.Equal(t, want/2, bus.Backoff(attempts, limit, 1), "%d attempts, at the earliest", attempts)
	}
	assert.Equal(t, 100*time.Millisecond, bus.Backoff(5, 100*time.Millisecond, 0))
}

func TestMemoryMarks(t *testing.T) {
	for _, c := range []struct {
		name             string
		limits           bus.MemoryLimits
		redisMax         int64
		limit, high, low int64
	}{
		{"as set", bus.MemoryLimits{Max: 1000, MinFree: 100}, 0, 1000, 900, 800},
		{"nothing set: the default", bus.MemoryLimits{MinFree: bus.DefaultMinFree}, 0, 100_000_000, 90_000_000, 80_000_000},
		{"not set: Redis' own limit", bus.MemoryLimits{MinFree: 100}, 5000, 5000, 4900, 4800},
		{"set higher than Redis' own limit", bus.MemoryLimits{Max: 10_000, MinFree: 100}, 5000, 5000, 4900, 4800},
		{"set lower than Redis' own limit", bus.MemoryLimits{Max: 1000, MinFree: 100}, 5000, 1000, 900, 800},
		{"little room", bus.MemoryLimits{MinFree: 10_000}, 12_000, 12_000, 9000, 6000},
	} {
		limit, high, low := c.limits.Marks(c.redisMax)
		assert.Equal(t, c.limit, limit, c.name)
		assert.Equal(t, c.high, high, c.name)
		assert.Equal(t, c.low, low, c.name)
	}
}

// Whatever is taken for a plain URL must be one that the parser takes too.
func FuzzPlainURLs(f *testing.F) {
	for _, seed := range []string{"https://a.example/widgets/12", "https://a-b.example/?a=1&b=~2", "https://a/:@", "https://", "https:///x", "https://a:1/", "https://a%20b/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		event := bus.Event{Type: bus.Noop, URL: text}
		accepted := event.Validate() == nil
		_, err := url.Parse(text)
		if accepted {
			require.NoError(t, err)
		}
		// A port that changes nothing takes a URL off the short way.
		if host, path, _ := strings.Cut(strings.TrimPrefix(text, "https://"), "/"); accepted && !strings.ContainsAny(host, ":@[?#") {
			event.URL = "https://" + host + ":443/" + path
			if len(event.URL) <= bus.MaxURLLen {
				require.NoError(t, event.Validate(), event.URL)
			}
		}
	})
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"widgets", "widgetz", 1}, {"widgets", "wdgets", 1},
		{"ab", "ba", 2}, {"kitten", "sitting", 3},
	} {
		assert.Equal(t, c.want, bus.EditDistance(c.a, c.b), c)
	}
}
