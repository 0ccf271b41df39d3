package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// EventType says what happened to a thing.
type EventType string

// The event types. Noop means that nothing happened: for example, it announces an existing thing.
const (
	Create EventType = "create"
	Update EventType = "update"
	Delete EventType = "delete"
	Noop   EventType = "noop"
	// Gap says that the subscriber has lost events. It has no topic and no URL; its data is a Gap of
	// package subscriber. It comes only to subscribers with the option gap_notices.
	Gap EventType = "gap"
)

// Event says what happened to one thing, and when. Its JSON is the one of deliveries: an object
// with topic, type, url, t (integer, ms since the Unix epoch) and, if there is any, data.
type Event struct {
	// Topic is 1 to 64 characters of a-z and _.
	Topic string
	Type  EventType
	// URL is the https URL of the thing, at most 1024 characters.
	URL string
	// Timestamp is when it happened, to the ms. Zero means the time at which the bus receives the
	// event.
	Timestamp time.Time
	// Data is one JSON value without duplicate names, or nil. It is small: 64 bytes as MessagePack,
	// unless the operator allows more.
	Data json.RawMessage
}

// delivered is an event as the bus delivers it.
type delivered struct {
	Topic string    `json:"topic"`
	Type  EventType `json:"type"`
	URL   string    `json:"url"`
	// T is ms. The Ruby original passes on the number that the publisher sent, which may be a
	// fraction.
	T    json.Number     `json:"t,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// MarshalJSON writes the event as the bus delivers it.
func (e Event) MarshalJSON() ([]byte, error) {
	d := delivered{Topic: e.Topic, Type: e.Type, URL: e.URL, Data: e.Data}
	if !e.Timestamp.IsZero() {
		d.T = json.Number(strconv.FormatInt(e.Timestamp.UnixMilli(), 10))
	}
	return marshal(d)
}

// UnmarshalJSON reads an event that the bus delivered. Fields that it does not know are ignored.
func (e *Event) UnmarshalJSON(text []byte) error {
	var d delivered
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*e = Event{Topic: d.Topic, Type: d.Type, URL: d.URL}
	if string(d.Data) != "null" {
		e.Data = d.Data
	}
	if d.T == "" {
		return nil
	}
	if ms, err := d.T.Int64(); err == nil {
		e.Timestamp = time.UnixMilli(ms)
		return nil
	}
	ms, err := d.T.Float64()
	if err != nil || math.Abs(ms) >= 1<<63 {
		return errors.New("t must be a number of ms since the Unix epoch")
	}
	whole, part := math.Modf(ms)
	e.Timestamp = time.UnixMilli(int64(whole)).Add(time.Duration(part * float64(time.Millisecond)))
	return nil
}

// published is an event as publishers send it.
type published struct {
	Type      EventType       `json:"type"`
	URL       string          `json:"url"`
	Timestamp Time            `json:"timestamp,omitzero"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// published returns the event's JSON as publishers send it.
func (e Event) published() ([]byte, error) {
	if !utf8.ValidString(e.URL) {
		return nil, errors.New("the event's URL must be UTF-8")
	}
	text, err := marshal(published{Type: e.Type, URL: e.URL, Timestamp: Time{e.Timestamp}, Data: e.Data})
	if err != nil || len(e.Data) == 0 {
		return text, err
	}
	// The bus is stricter than encoding/json. If it cannot parse a request, its error does not name
	// the event, so check each event here, inside an array, which counts for the depth of nesting.
	if _, err := jsontext.NewDecoder(bytes.NewReader(array([][]byte{text}))).ReadValue(); err != nil {
		return nil, fmt.Errorf("the event's data: %w", err)
	}
	return text, nil
}

// marshal is json.Marshal without escaping <, > and &, so that the bus gets the caller's bytes.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
