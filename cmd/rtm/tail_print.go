package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"routemaster/client"
	"routemaster/internal/terminal"
)

// eventPrinter prints events, a line each.
type eventPrinter struct {
	out            io.Writer
	json, coloured bool
	now            func() time.Time
}

func newEventPrinter(out io.Writer, json bool) *eventPrinter {
	return &eventPrinter{out: out, json: json, coloured: !json && wantsColour(out), now: time.Now}
}

// wantsColour reports whether an output is a terminal whose user has not switched colours off
// (no-color.org).
func wantsColour(out io.Writer) bool {
	return terminal.Is(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// print prints an event with one write.
func (p *eventPrinter) print(event client.Event) error {
	var text bytes.Buffer
	if p.json {
		text.WriteString(terminal.Escape(terminal.JSON(event)))
	} else {
		p.line(&text, event)
	}
	text.WriteByte('\n')
	_, err := p.out.Write(text.Bytes())
	return err
}

// The colours: SGR parameters of ECMA-48.
const (
	plain  = "0"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

var typeColours = map[client.EventType]string{client.Create: green, client.Update: yellow, client.Delete: red, client.Gap: red}

// line writes an event for people: the time, the topic, the type, the URL and the data.
func (p *eventPrinter) line(text *bytes.Buffer, event client.Event) {
	p.word(text, faint, p.clock(event.Timestamp))
	p.word(text, cyan, " "+terminal.Escape(cmp.Or(event.Topic, "-")))
	p.word(text, cmp.Or(typeColours[event.Type], faint), fmt.Sprintf(" %-6s", terminal.Escape(string(event.Type))))
	p.word(text, plain, " "+terminal.Escape(cmp.Or(event.URL, "-")))
	if len(event.Data) > 0 {
		p.word(text, faint, " "+terminal.Escape(string(event.Data)))
	}
}

func (p *eventPrinter) word(text *bytes.Buffer, colour, word string) {
	if p.coloured && colour != plain {
		word = "\x1b[" + colour + "m" + word + "\x1b[" + plain + "m"
	}
	text.WriteString(word)
}

// clock formats a local time, with the date unless it is today.
func (p *eventPrinter) clock(t time.Time) string {
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

// catchBrokenPipes has a write to a program that has ended fail, instead of killing this process.
// The function that it returns restores the default.
func catchBrokenPipes() (restore func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE) // not ignored, for commands would inherit that
	return func() { signal.Stop(signals) }
}

// isClosed reports whether an error says that the reader of the output has closed it.
func isClosed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
