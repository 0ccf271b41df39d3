package overview

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// count writes a number with commas, so that its size is seen.
func count[N int | int64 | float64](n N) string {
	digits := strconv.FormatInt(int64(math.Round(float64(n))), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// many writes a number of things: 1 event, 2,000 events.
func many[N int | int64 | float64](n N, thing, things string) string {
	if math.Round(float64(n)) == 1 {
		return "1 " + thing
	}
	return count(n) + " " + things
}

func events[N int | int64 | float64](n N) string { return many(n, "event", "events") }

// waits describes a subscriber's queue, empty if it has none.
func waits(sub Subscriber) string {
	if sub.Queued == 0 {
		return ""
	}
	text := many(sub.Queued, "event waits", "events wait")
	if sub.OldestAge != nil {
		text += ", the oldest for " + span(*sub.OldestAge)
	}
	return text + "."
}

// span writes a time in seconds: 0.4 s, 12 s, 41 min, 1 h 22 min, 3 days.
func span(seconds float64) string {
	const minute, hour, day = 60, 3600, 24 * 3600
	switch {
	case seconds < 10:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	case seconds < 2*minute:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < hour:
		return fmt.Sprintf("%d min", int(seconds/minute))
	case seconds < 2*day:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(seconds/hour), int(seconds)%hour/minute), " 0 min")
	}
	return count(int64(seconds/day)) + " days"
}

func spanOf(d time.Duration) string { return span(d.Seconds()) }

// perSecond writes a rate: 0.25/s, 37.8/s, 971/s.
func perSecond(rate float64) string {
	switch {
	case rate == 0 || rate >= 100:
		return count(rate) + "/s"
	case rate < 10:
		return strings.TrimSuffix(strconv.FormatFloat(rate, 'f', 2, 64), ".00") + "/s"
	}
	return strconv.FormatFloat(rate, 'f', 1, 64) + "/s"
}

// megabytes writes bytes in MB, without the unit.
func megabytes(bytes int64) string {
	return count(bytes/1_000_000) + "." + strconv.FormatInt(bytes%1_000_000/100_000, 10)
}

// list writes names: a, b and c. Of more than three it writes two and how many others.
func list(names []string) string {
	switch n := len(names); {
	case n <= 1:
		return strings.Join(names, "")
	case n <= 3:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return fmt.Sprintf("%s, %s and %d others", names[0], names[1], len(names)-2)
}

// failures explain deliveries that failed without a response.
var failures = map[string]string{
	bus.ErrorDNS:            "The name of its host has no address.",
	bus.ErrorDenied:         "The operator does not let the bus connect to its address.",
	bus.ErrorRefused:        "It refuses connections.",
	bus.ErrorUnreachable:    "It cannot be reached.",
	bus.ErrorConnectTimeout: "Connections to it take too long.",
	bus.ErrorTLS:            "The TLS handshake with it fails.",
	bus.ErrorTimeout:        "It does not answer in time.",
	bus.ErrorReset:          "It closes the connection before it answers.",
	bus.ErrorProtocol:       "What it answers is not HTTP.",
	bus.ErrorReceipt:        "Its receipt cannot be read.",
	bus.ErrorSecrets:        "Its signing secrets cannot be opened.",
}

// failure says how the last delivery failed, if it did.
func failure(sub Subscriber) string {
	if text := failures[sub.Failure]; text != "" {
		return text
	}
	if _, err := strconv.Atoi(sub.Failure); err == nil {
		return "It answers " + sub.Failure + "."
	}
	return ""
}

// sentences joins the sentences that are not empty.
func sentences(all ...string) string {
	var said []string
	for _, s := range all {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, " ")
}
