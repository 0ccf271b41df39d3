package delivery

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func packed(t testing.TB, number int) wire.PackedEvent {
	t.Helper()
	return wiretest.Pack(t, "widgets", fmt.Sprintf(`{"type":"noop","url":"https://x.example/%d"}`, number))
}

func TestPayload(t *testing.T) {
	const broken = 7 // every seventh, if any
	for _, c := range []struct {
		events int
		broken bool
	}{{0, false}, {1, false}, {2, false}, {1000, false}, {1, true}, {8, true}, {15, true}, {1000, true}} {
		var events []wire.PackedEvent
		var want []string
		for i := range c.events {
			if c.broken && i%broken == 0 {
				events = append(events, wire.PackedEvent("\x92\xa1e"))
				continue
			}
			events = append(events, packed(t, i))
			want = append(want, fmt.Sprintf("https://x.example/%d", i))
		}
		p, unreadable, _ := newPayload(events, 0, io.Discard)
		assert.Equal(t, len(events)-len(want), unreadable)
		assert.Len(t, p.events, len(want))
		text, err := io.ReadAll(p.reader())
		require.NoError(t, err)
		if len(want) > 0 {
			assert.Len(t, text, int(p.length))
			require.NoError(t, iotest.TestReader(p.reader(), text), "however it is read")
			var got []struct{ URL string }
			require.NoError(t, json.Unmarshal(text, &got))
			for i, event := range got {
				assert.Equal(t, want[i], event.URL)
			}
			assert.Len(t, got, len(want))
		}
	}
}

func BenchmarkPayload(b *testing.B) {
	var events []wire.PackedEvent
	for i := range 100 {
		events = append(events, packed(b, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		p, _, _ := newPayload(events, 0, io.Discard)
		n, err := io.Copy(io.Discard, p.reader())
		if err != nil || n != p.length {
			b.Fatal(n, err)
		}
	}
}

func TestPayloadCountsWhatIsLeftOut(t *testing.T) {
	_, unreadable, err := newPayload([]wire.PackedEvent{packed(t, 0), wire.PackedEvent("x"), wire.PackedEvent("y")}, 0, io.Discard)
	assert.Equal(t, 2, unreadable)
	assert.ErrorContains(t, err, "unpack event")
}
