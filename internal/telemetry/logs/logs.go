// Package logs makes the programs' logger, logs failures, and warns when file descriptors run out.
package logs

import (
	"errors"
	"io"
	"log/slog"

	"routemaster/internal/bus"
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

// Failure logs an error, if there is one, as what a background task has failed at. That Redis is
// unavailable is left out: package rdb logs that, once for all.
func Failure(log *slog.Logger, message string, err error, fields ...any) {
	if err != nil && !errors.Is(err, bus.ErrUnavailable) {
		log.Error(message, append(fields, "error", err)...)
	}
}

// inSeconds writes durations as seconds. JSON would have them in nanoseconds; text has a unit.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key, a.Value.Duration().Seconds())
	}
	return a
}
