// Package logs makes the programs' logger, and warns when file descriptors run out.
package logs

import (
	"io"
	"log/slog"
)

// New makes a logger that writes one line for each event to w, as JSON or as text.
func New(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if json {
		options.ReplaceAttr = inSeconds
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// inSeconds writes durations as seconds. JSON would have them in nanoseconds; text has a unit.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key, a.Value.Duration().Seconds())
	}
	return a
}
