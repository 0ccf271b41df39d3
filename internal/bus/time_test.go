package bus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{
		"2027-01-31T18:00:00Z": "2027-01-31T18:00:00Z", "2027-01-31t18:00:00z": "2027-01-31T18:00:00Z",
		"2027-01-31t18:00:00.5+01:00": "2027-01-31T17:00:00.5Z", "2027-01-31T18:00:00-00:00": "2027-01-31T18:00:00Z",
		"2027-01-31T18:00:00.123456789012Z": "2027-01-31T18:00:00.123456789Z", "0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z",
		"1990-12-31T23:59:60Z": "1991-01-01T00:00:00Z", "1990-12-31T15:59:60.25-08:00": "1991-01-01T00:00:00.25Z",
	} {
		got, ok := bus.ParseTime(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got.UTC().Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{
		"", "2027-01-31", "2027-01-31T8:00:00Z", "2027-01-31T18:00:00,5Z", "2027-01-31T18:00:00", "2027-01-31T18:00:00+0100", "2027-01-31 18:00:00Z",
		"2027-02-29T18:00:00Z", "2027-01-31T24:00:00Z", "2027-01-31T18:00:60Z", "2027-01-31T18:00:00+24:00", "2027-01-31T18:00Z", "27-01-31T18:00:00Z", "2027-1-31T18:00:00Z",
	} {
		_, ok := bus.ParseTime(text)
		assert.False(t, ok, text)
	}
}
