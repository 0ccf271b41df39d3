package telemetry

import (
	"errors"
	"io"
	"log/slog"
	"syscall"

	"routemaster/internal/bus"
)

// NewLogger makes a logger that writes one line for each event to w, as JSON or as text.
func NewLogger(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if json {
		options.ReplaceAttr = inSeconds
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(&condenser{Handler: handler, repeats: newRepeats()})
}

// LogFailure logs an error of a background task, if there is one. It leaves out that Redis is
// unavailable: package rdb logs that, once for all.
func LogFailure(log *slog.Logger, message string, err error, fields ...any) {
	if err != nil && !errors.Is(err, bus.ErrUnavailable) {
		log.Error(message, append(fields, "error", err)...)
	}
}

// OutOfFiles warns that the process or its host is out of file descriptors, if that is the error.
// Doing names the operation that needed one.
func OutOfFiles(log *slog.Logger, err error, doing string) {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		Often(log, doing).Warn("out of file descriptors; raise the limit of open files", "doing", doing, "error", err)
	}
}

// inSeconds writes durations as seconds. JSON would have them in nanoseconds; text has a unit.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key, a.Value.Duration().Seconds())
	}
	return a
}
