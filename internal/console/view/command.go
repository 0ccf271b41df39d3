package view

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/format"
)

// Path makes a path of the API from its parts.
func Path(parts ...string) string {
	var path strings.Builder
	for _, part := range parts {
		// The shell must not take a dollar for a variable.
		path.WriteString("/" + strings.ReplaceAll(url.PathEscape(part), "$", "%24"))
	}
	return path.String()
}

// Command is the curl command that sends a request to the API. The shell has the address of the bus
// in BUS, and the token, or root's key, in TOKEN. Body is sent as JSON, unless it is nil.
func Command(method, path string, body any) string {
	command := `curl -u "$TOKEN:"`
	switch {
	case body != nil && method == "POST":
	case method != "GET":
		command += " -X " + method
	}
	command += ` "$BUS` + path + `"`
	if body != nil {
		command += " -d " + bus.ShellWord(JSON(body))
	}
	return command
}

// JSON is the JSON of a value, on one line.
func JSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text.String())
}

// maxShown is how many bytes of a JSON text a page shows.
const maxShown = 64 << 10

// Indent writes JSON so that it is easy to read, with its digits unchanged. Text longer than a page
// shows is cut, and ends with a note.
func Indent(text []byte) string {
	indented := string(format.JSON(text, maxShown))
	if len(indented) <= maxShown {
		return indented
	}
	return bus.Excerpt(indented, maxShown) +
		"\n(cut: this is the start of " + format.Count(int64(len(indented))) + " bytes; the API has all of them)"
}
