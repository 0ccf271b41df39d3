package view

import (
	"strings"

	"routemaster/internal/format"
)

// Plural counts things: "1 event", "1,204 events".
func Plural(n int64, thing string) string { return format.Plural(n, thing) }

// Some lists at most n names, and says how many more there are: "a, b and 3 more".
func Some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " and " + format.Count(int64(len(names)-n)) + " more"
}
