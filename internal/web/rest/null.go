package rest

import "time"

// OrNull returns a value for JSON: null if it is the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// Millis returns a time for JSON, in ms since the Unix epoch: null for the zero time.
func Millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
