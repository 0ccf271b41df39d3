//go:build !unix

package app

import "log/slog"

// openFiles is nothing where there is no such limit.
func openFiles() slog.Attr { return slog.Attr{} }
