package console

import (
	"fmt"
	"net/url"
	"strings"
)

// Link returns a relative link between two pages, given by their paths, and fills names into the
// second. Being relative, it works behind a proxy that serves the console under any path.
func Link(from, to string, names ...string) (string, error) {
	var filled strings.Builder
	rest := to
	for {
		before, after, found := strings.Cut(rest, "{")
		filled.WriteString(before)
		if !found {
			break
		}
		if len(names) == 0 {
			return "", fmt.Errorf("the link to %q needs more names", to)
		}
		filled.WriteString(url.PathEscape(names[0]))
		names = names[1:]
		_, rest, _ = strings.Cut(after, "}")
	}
	if len(names) > 0 {
		return "", fmt.Errorf("the link to %q has too many names", to)
	}
	return AtRoot(from) + filled.String(), nil
}

// AtRoot leads from a page to the console itself; a path from there may follow.
func AtRoot(from string) string {
	if depth := strings.Count(from, "/"); depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}
