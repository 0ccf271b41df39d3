package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// usual is an event of a usual size, and usualText is what its publisher sends.
var usual = bus.Event{
	Topic: "widgets", Type: bus.Update, URL: "https://warehouse.example/widgets/1234567890", Timestamp: 1_700_000_000_000,
	Data: []byte(`{"stock":3,"colour":"red"}`),
}

const usualText = `{"type":"update","url":"https://warehouse.example/widgets/1234567890","data":{"stock":3,"colour":"red"}}`

// BenchmarkParseEvents is what a publish costs before it goes to Redis.
func BenchmarkParseEvents(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			text := []byte(usualText)
			if n > 1 {
				text = []byte("[" + strings.Repeat(usualText+",", n-1) + usualText + "]")
			}
			b.ReportAllocs()
			for b.Loop() {
				if events, err := ParseEvents(text, "widgets", receivedAt, Limits{Events: n, Data: 64}); err != nil || len(events) != n {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}

func BenchmarkPackEvent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PackEvent(&usual, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendEventJSON(b *testing.B) {
	event, err := PackEvent(&usual, 64)
	require.NoError(b, err)
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		if body, err = AppendEventJSON(body[:0], event); err != nil {
			b.Fatal(err)
		}
	}
}
