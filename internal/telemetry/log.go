package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger makes a logger that writes one line an event to w, as JSON or as text.
func NewLogger(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
