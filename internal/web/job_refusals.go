package web

import (
	"fmt"

	"routemaster/internal/bus"
)

// missing is the error of a member that must be there.
func missing(pointer, what string) error {
	return &bus.Invalid{Pointer: pointer, ID: "missing_parameter", Detail: "is missing; send " + what}
}

// invalidParameter is the error of a value that is not within its bounds.
func invalidParameter(pointer, format string, args ...any) error {
	return &bus.Invalid{Pointer: pointer, ID: "invalid_parameter", Detail: fmt.Sprintf(format, args...)}
}
