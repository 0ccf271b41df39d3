package view

import (
	"strconv"
	"strings"

	"routemaster/client/subscriber"
)

// setting is a setting of a subscriber: its field, and its current value in the field's form.
type setting struct {
	Field
	of func(subscriber.Info) string
}

// deadLetters is the prefix of the names of the settings that say when events are given up.
const deadLetters = "dead_letters"

// settings are a subscriber's settings, by their names in the JSON of the API, except the uuid,
// which is a secret.
var settings = []setting{
	{Field{Name: "topics", Label: "Topics", Kind: Lines, Hint: "One a line. A topic that is taken out is unsubscribed."}, func(i subscriber.Info) string { return strings.Join(i.Topics, "\n") }},
	{Field{Name: "callback", Label: "Callback", Kind: Text, Required: true, Hint: "The https URL that batches are sent to."}, func(i subscriber.Info) string { return i.Callback }},
	{Field{Name: "timeout", Label: "Longest wait, ms", Kind: Number, Hint: "How long a batch waits for more events: 0 to 3,600,000. Empty is 500."}, func(i subscriber.Info) string { return strconv.FormatInt(int64(i.Timeout), 10) }},
	{Field{Name: "max", Label: "Events of a batch", Kind: Number, Hint: "At most 10,000. Empty is 100."}, number(func(i subscriber.Info) int { return i.Max })},
	{Field{Name: "max_bytes", Label: "Bytes of a delivery", Kind: Number, Hint: "1,024 to 8,388,608. Empty is no limit."}, number(func(i subscriber.Info) int { return i.MaxBytes })},
	{Field{Name: "max_requests_per_minute", Label: "Deliveries in a minute", Kind: Number, Hint: "Empty is no limit."}, number(func(i subscriber.Info) int { return i.MaxRequestsPerMinute })},
	{Field{Name: "max_events_per_minute", Label: "Events in a minute", Kind: Number, Hint: "Empty is no limit."}, number(func(i subscriber.Info) int { return i.MaxEventsPerMinute })},
	{Field{Name: "lanes", Label: "Lanes", Kind: Number, Hint: "1 to 64. Events of one order key are delivered in order. Empty is 1."}, number(func(i subscriber.Info) int { return i.Lanes })},
	{Field{Name: "order_key", Label: "Order key", Kind: Text, Hint: "A JSON pointer into an event. Empty is /url."}, func(i subscriber.Info) string { return i.OrderKey }},
	{Field{Name: "strict_order", Label: "Strict order", Kind: Check, Hint: "A batch that failed holds up those behind it."}, check(func(i subscriber.Info) bool { return i.StrictOrder })},
	{Field{Name: "partial", Label: "Partial receipts", Kind: Check, Hint: "A 207 is read as a receipt for each event."}, check(func(i subscriber.Info) bool { return i.Partial })},
	{Field{Name: "keep_age", Label: "Keep queued events for, ms", Kind: Number, Hint: "An older batch is dropped: 60,000 to 2,592,000,000. Empty is no limit."}, number(func(i subscriber.Info) subscriber.Milliseconds { return i.KeepAge })},
	{Field{Name: "keep_events", Label: "Keep queued events, at most", Kind: Number, Hint: "The oldest beyond that are dropped. Empty is no limit."}, number(func(i subscriber.Info) int { return i.KeepEvents })},
	{Field{Name: "gap_notices", Label: "Gap notices", Kind: Check, Hint: "An event tells the subscriber of events that it has lost."}, check(func(i subscriber.Info) bool { return i.GapNotices })},
	{Field{Name: "log_attempts", Label: "Record attempts", Kind: Choice, Choices: []string{"failures", "all", "none"}}, func(i subscriber.Info) string { return i.LogAttempts }},
	{Field{Name: deadLetters, Label: "Dead letters", Kind: Check, Hint: "Events that are given up are put away. Otherwise they are tried for ever."}, check(func(i subscriber.Info) bool { return i.DeadLetters != nil })},
	letters("attempts", "Give up after attempts", "1 to 1,000. Empty is no limit.", func(d subscriber.DeadLetters) int { return d.Attempts }),
	letters("age", "Give up at an age of, ms", "60,000 to 2,592,000,000. Empty is no limit.", func(d subscriber.DeadLetters) subscriber.Milliseconds { return d.Age }),
	letters("keep_events", "Keep dead events, at most", "Empty is 10,000.", func(d subscriber.DeadLetters) int { return d.KeepEvents }),
	letters("keep_bytes", "Keep bytes of them, at most", "Empty is 10,000,000.", func(d subscriber.DeadLetters) int { return d.KeepBytes }),
	letters("keep_age", "Keep them for, ms", "Empty is a week.", func(d subscriber.DeadLetters) subscriber.Milliseconds { return d.KeepAge }),
}

// uuid is the field of the uuid.
var uuid = Field{Name: "uuid", Label: "New uuid", Kind: Secret, Hint: "The user name of the deliveries. Empty leaves it as it is."}

func number[N ~int | ~int64](of func(subscriber.Info) N) func(subscriber.Info) string {
	return func(i subscriber.Info) string {
		if n := of(i); n != 0 {
			return strconv.FormatInt(int64(n), 10)
		}
		return ""
	}
}

func check(of func(subscriber.Info) bool) func(subscriber.Info) string {
	return func(i subscriber.Info) string {
		if of(i) {
			return "on"
		}
		return ""
	}
}

func letters[N ~int | ~int64](name, label, hint string, of func(subscriber.DeadLetters) N) setting {
	return setting{Field{Name: deadLetters + "/" + name, Label: label, Kind: Number, Hint: hint}, number(func(i subscriber.Info) N {
		if i.DeadLetters == nil {
			return 0
		}
		return of(*i.DeadLetters)
	})}
}

// NewSettings makes the form of a subscriber's settings.
func NewSettings(i subscriber.Info) Settings {
	var fields []Field
	for _, one := range settings {
		field := one.Field
		field.Value = one.of(i)
		fields = append(fields, field)
	}
	return newSettings(append(fields, uuid))
}
