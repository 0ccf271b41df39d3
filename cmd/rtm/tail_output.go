package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"routemaster/client"
)

// printer prints events, a line each.
type printer struct {
	mu             sync.Mutex
	out            io.Writer
	json, coloured bool
	now            func() time.Time
}

func newPrinter(out io.Writer, json bool) *printer {
	return &printer{out: out, json: json, coloured: !json && wantsColour(out), now: time.Now}
}

// wantsColour reports whether an output is a terminal whose user has not asked for none (no-color.org).
func wantsColour(out io.Writer) bool {
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// print prints a delivery in one piece, and returns once it is written.
func (p *printer) print(events []client.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text bytes.Buffer
	for _, event := range events {
		if p.json {
			text.WriteString(showable(jsonOf(event)))
		} else {
			p.line(&text, event)
		}
		text.WriteByte('\n')
	}
	_, err := p.out.Write(text.Bytes())
	return err
}

// The colours, as what ECMA-48 calls SGR parameters.
const (
	plain  = "0"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

var typeColours = map[client.EventType]string{client.Create: green, client.Update: yellow, client.Delete: red}

// line is an event for people: when, where, what, and the data.
func (p *printer) line(text *bytes.Buffer, event client.Event) {
	p.word(text, faint, p.clock(event.Timestamp))
	p.word(text, cyan, " "+showable(event.Topic))
	p.word(text, cmp.Or(typeColours[event.Type], faint), fmt.Sprintf(" %-6s", showable(string(event.Type))))
	p.word(text, plain, " "+showable(event.URL))
	if len(event.Data) > 0 {
		p.word(text, faint, " "+showable(string(event.Data)))
	}
}

func (p *printer) word(text *bytes.Buffer, colour, word string) {
	if p.coloured && colour != plain {
		word = "\x1b[" + colour + "m" + word + "\x1b[" + plain + "m"
	}
	text.WriteString(word)
}

// clock is a local time, with the date unless it is today's.
func (p *printer) clock(t time.Time) string {
	now := p.now()
	if t.IsZero() {
		t = now
	}
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// jsonOf is the JSON of a value on one line: of an event, or of several, as the bus delivers them.
func jsonOf(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // ours, or read from JSON
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// showable is a text without what a terminal would act on: that is written as JSON escapes it. JSON keeps its value.
func showable(text string) string {
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

// catchBrokenPipes keeps the program from being killed when it writes to a program that has ended: the write fails
// instead. The function that it returns ends that.
func catchBrokenPipes() (restore func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE) // not ignored, for commands would inherit that
	return func() { signal.Stop(signals) }
}

// isClosed reports whether an error is that nobody reads the output any more.
func isClosed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
