package client

import (
	"encoding/json"
	"strconv"
	"time"
)

// Time is a time that the bus sends in ms since the Unix epoch. The zero time stands for none.
type Time struct{ time.Time }

// UnmarshalJSON reads ms since the Unix epoch, or null.
func (t *Time) UnmarshalJSON(text []byte) error {
	var ms *int64
	err := json.Unmarshal(text, &ms)
	if t.Time = (time.Time{}); ms != nil {
		t.Time = time.UnixMilli(*ms)
	}
	return err
}

// MarshalJSON writes ms since the Unix epoch, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10), nil
}
