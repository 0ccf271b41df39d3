package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// usual is an event of a usual size.
var usual = bus.Event{
	Topic: "widgets", Type: bus.Update, URL: "https://warehouse.example/widgets/1234567890", Timestamp: 1_700_000_000_000,
	Data: []byte(`{"stock":3,"colour":"red"}`),
}

func BenchmarkPack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PackEvent(&usual, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnpackToJSON(b *testing.B) {
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
