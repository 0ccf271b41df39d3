package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// usualText is an event of a usual size, as its publisher sends it.
const usualText = `{"type":"update","url":"https://warehouse.example/widgets/1234567890","data":{"stock":3,"colour":"red"}}`

// BenchmarkParseEvents measures the cost of a publish before it goes to Redis.
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

func BenchmarkAppendEventJSON(b *testing.B) {
	events, err := ParseEvents([]byte(usualText), "widgets", receivedAt, Limits{Events: 1, Data: 64})
	require.NoError(b, err)
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		if body, err = AppendEventJSON(body[:0], events[0]); err != nil {
			b.Fatal(err)
		}
	}
}
