//go:build !unix

package app

import "log/slog"

// openFiles is empty where there is no such limit.
func openFiles() slog.Attr { return slog.Attr{} }
