package subscriber

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ofError explains each error of an attempt, with a remedy.
var ofError = map[string]string{
	"dns":             "the callback's host has no address: correct the name in the callback's URL, or its DNS",
	"denied":          "the bus does not connect to this address: use a public one, or ask the operator (ROUTEMASTER_CALLBACK_DENY)",
	"refused":         "nobody listens there: start the receiver, or correct the callback's port",
	"unreachable":     "the callback gives no answer: see that the receiver runs, on that port, that a firewall lets the bus in, and that it answers in time",
	"connect_timeout": "no connection in time: see that a firewall lets the bus in, and that the callback's host and port are right",
	"tls":             "the TLS handshake failed: the port must speak TLS, with a valid certificate for the callback's host from an authority that the bus trusts",
	"timeout":         "no answer in time: have the receiver acknowledge first and work afterwards",
	"reset":           "the connection was closed without an answer: see the log of the receiver, or of the proxy before it",
	"protocol":        "the answer is not HTTP: correct the callback's port",
	"receipt":         "the body of the 207 is no receipt: correct the receiver",
	"secrets":         "the bus cannot open the signing secrets: tell the operator (ROUTEMASTER_SECRETS_KEY)",
}

// ofStatus does the same for each HTTP status.
var ofStatus = map[int]string{
	http.StatusBadRequest: "the receiver refused the content: see its log",
	http.StatusUnauthorized: "the receiver refused the uuid, which comes as the user name, or the signature: give it the uuid of the subscription " +
		"or, if it checks signatures, its signing secret, and set its clock, which may be off",
	http.StatusForbidden:             "the receiver, or what is before it, does not let the bus in",
	http.StatusNotFound:              "the receiver has no such path: correct the path of the callback",
	http.StatusMethodNotAllowed:      "the receiver does not take POST there: correct the path of the callback",
	http.StatusGone:                  "the receiver says that it is gone: unsubscribe, or correct the callback",
	http.StatusRequestEntityTooLarge: "the delivery is too large for the receiver: set max_bytes, or a smaller max, which holds for new batches only",
	http.StatusUnprocessableEntity:   "the receiver refused the content: see its log",
	http.StatusTooManyRequests:       "the receiver asks for a slower pace: set max_requests_per_minute",
	http.StatusBadGateway:            "a proxy does not reach the receiver: see that it runs",
	http.StatusServiceUnavailable:    "the receiver, or a proxy before it, is not ready",
	http.StatusGatewayTimeout:        "a proxy got no answer from the receiver in time",
}

// timeLayout is of times in sentences, which name their zone.
const timeLayout = "2006-01-02 15:04:05 -07:00"

// Remedy says in a sentence what went wrong with an attempt and what to do about it. It is empty if
// nothing is to be done.
func (a Attempt) Remedy() string {
	text := ofError[a.Error]
	if text == "" {
		text = ofStatus[a.Status]
	}
	switch class := a.Status / 100; {
	case text != "":
		return text
	case a.Error != "":
		return "there was no answer"
	case class == 2 && a.Outcome == "acknowledged":
		return ""
	case class == 2:
		return "the receipt does not acknowledge all events: see the receiver's log for what it retries or rejects"
	case class == 3:
		return "the bus follows no redirect: set the callback to where it leads"
	case class == 4:
		return "the receiver refused the delivery: see its log"
	}
	return "the receiver failed: see its log"
}

// Result is the result of an attempt, in a few words: its outcome, status or error, and duration.
func (a Attempt) Result() string {
	text := a.Outcome
	switch {
	case a.Status != 0 && a.Error != "":
		text += fmt.Sprintf(", %d, %s", a.Status, a.Error)
	case a.Status != 0:
		text += fmt.Sprintf(", %d %s", a.Status, http.StatusText(a.Status))
	case a.Error != "":
		text += ", " + a.Error
	}
	if a.Duration > 0 {
		text += ", " + a.Duration.Duration().String()
	}
	return text
}

// Explain says in a sentence why nothing is being delivered at a time. It is empty if nothing
// prevents deliveries, other than failures.
func (s Status) Explain(now time.Time) string {
	switch {
	case s.IsPausedForGood():
		return "paused until somebody resumes it"
	case s.IsPaused(now):
		return "paused until " + s.PausedUntil.Format(timeLayout)
	case s.ThrottledUntil.After(now) && !s.PacedUntil.After(s.ThrottledUntil.Time):
		return "throttled until " + s.ThrottledUntil.Format(timeLayout) + ", because deliveries have failed"
	case s.PacedUntil.After(now):
		return "waiting until " + s.PacedUntil.Format(timeLayout) + ", to keep to its pace"
	case s.Blocked > 0:
		return strings.TrimSuffix(s.blocked()+"; "+s.due(now), "; ")
	}
	return s.due(now)
}

func (s Status) blocked() string {
	if s.Blocked == 1 {
		return "a batch that failed holds up those behind it in its lane, in strict order"
	}
	return fmt.Sprintf("batches that failed hold up those behind them in %d lanes, in strict order", s.Blocked)
}

func (s Status) due(now time.Time) string {
	if s.Queued == 0 || !s.NextDeliveryAt.After(now) {
		return ""
	}
	return "the next batch is due at " + s.NextDeliveryAt.Format(timeLayout)
}
