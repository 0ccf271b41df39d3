// Package terminal shows texts of others on a terminal that must not act on them.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is reports whether a reader or a writer is a terminal.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Escape returns a text in which everything that a terminal would act on, such as control
// characters and line ends, is escaped as in JSON. A text that is JSON keeps its value.
func Escape(text string) string {
	var shown []byte
	for _, r := range text {
		switch {
		case strconv.IsPrint(r):
			shown = utf8.AppendRune(shown, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			shown = fmt.Appendf(shown, `\u%04x\u%04x`, high, low)
		default:
			shown = fmt.Appendf(shown, `\u%04x`, r)
		}
	}
	return string(shown)
}

// EscapeLines is [Escape] for each line of a text.
func EscapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Escape(line)
	}
	return strings.Join(lines, "\n")
}

// JSON returns the JSON of a value on one line, without the escapes that are only for HTML. It is
// not escaped for a terminal. The value must be one that can be encoded.
func JSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}
