package view

import (
	"strings"

	"routemaster/internal/format"
)

// Some lists at most n names, and says how many more there are: "a, b and 3 more".
func Some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " and " + format.Count(int64(len(names)-n)) + " more"
}
