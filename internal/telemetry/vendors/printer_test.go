package vendors

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestThePrinterPrintsWhatChangedOnOneLine(t *testing.T) {
	for name, handler := range map[string]func(io.Writer, *slog.HandlerOptions) slog.Handler{
		"text": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) },
		"json": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) },
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			level := &slog.LevelVar{}
			p := newPrinter(slog.New(handler(&logged, &slog.HandlerOptions{Level: level})), "mybus", "staging")
			measures := []Measure{
				{Counter: bus.NewCounter("redis.bytes_used"), Value: 7, Gauge: true},
				{Counter: bus.NewCounter("unused"), Gauge: true},
			}
			for i := range 1000 {
				tag := bus.Tag{Name: "subscriber", Value: fmt.Sprintf("a-subscriber-%d", i)}
				measures = append(measures, Measure{Counter: bus.NewCounter("subscriber.queue.events", tag), Value: 1, Gauge: true})
			}
			send := func() []string {
				logged.Reset()
				require.NoError(t, p.Send(t.Context(), measures))
				return strings.Split(strings.TrimSuffix(logged.String(), "\n"), "\n")
			}
			lines := send()
			require.Len(t, lines, 1)
			assert.Less(t, len(lines[0]), 2048)
			assert.Greater(t, len(lines[0]), 1500)
			assert.Contains(t, lines[0], "redis.bytes_used")
			assert.Contains(t, lines[0], "more")
			assert.NotContains(t, lines[0], "unused")
			assert.Equal(t, []string{""}, send(), "nothing has changed")

			measures[500].Value, measures[0].Value = 0, 8
			lines = send()
			require.Len(t, lines, 1)
			assert.Equal(t, 1, strings.Count(lines[0], "subscriber.queue"))
			assert.Contains(t, lines[0], "a-subscriber-498")

			level.Set(slog.LevelDebug)
			for i := range measures {
				measures[i].Value += 100
			}
			lines = send()
			assert.Greater(t, len(lines), 10)
			for _, line := range lines {
				assert.Less(t, len(line), 2048)
			}
			assert.Equal(t, 1000, strings.Count(strings.Join(lines, ""), "a-subscriber-"))
		})
	}
}
