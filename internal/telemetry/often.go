package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// repeatInterval is the time between two lines with one message about one subject.
	repeatInterval = 10 * time.Second
	// maxSubjects bounds the subjects of a message that have lines of their own, and so the lines
	// and the memory. All further subjects share one line.
	maxSubjects = 100
)

// Often returns the logger for messages that may occur many times a second for one subject, such as
// a subscriber. It writes the first line with a message at once, and then one in 10 s: its field
// times says how often it occurred since the line before, its other fields are the latest's. A
// logger that writes DEBUG, or that [NewLogger] has not made, writes every line.
func Often(log *slog.Logger, subject string) *slog.Logger {
	c, ok := log.Handler().(*condenser)
	if !ok || c.Enabled(context.Background(), slog.LevelDebug) {
		return log
	}
	return slog.New(&condenser{Handler: c.Handler, repeats: c.repeats, often: true, subject: subject})
}

// Flush writes the lines that wait to be counted, and has a logger write every later line. Programs
// call it as they end.
func Flush(log *slog.Logger) {
	if c, ok := log.Handler().(*condenser); ok {
		c.repeats.close()
	}
}

// condenser is a handler that counts lines which repeat.
type condenser struct {
	slog.Handler
	repeats *repeats
	// often is whether this is the handler of a logger from [Often], about a subject.
	often   bool
	subject string
}

func (c *condenser) Handle(ctx context.Context, record slog.Record) error {
	if c.often && c.repeats.count(c.subject, c.Handler, record) {
		return nil
	}
	return c.Handler.Handle(ctx, record)
}

func (c *condenser) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *c
	with.Handler = c.Handler.WithAttrs(attrs)
	return &with
}

func (c *condenser) WithGroup(name string) slog.Handler {
	with := *c
	with.Handler = c.Handler.WithGroup(name)
	return &with
}

// repeats are the lines of a program that were written in the last interval, and may repeat.
type repeats struct {
	mu       sync.Mutex
	lines    map[repeatKey]*repeat
	subjects map[string]int // of each message
	closed   bool
}

// repeatKey identifies lines that repeat each other. A message has one key for all further
// subjects.
type repeatKey struct {
	message, subject string
	others           bool
}

// repeat counts a line since it was written. Times is how often; if that is not 0, record is the
// latest, for handler.
type repeat struct {
	times   int
	handler slog.Handler
	record  slog.Record
	timer   *time.Timer
}

func newRepeats() *repeats {
	return &repeats{lines: map[repeatKey]*repeat{}, subjects: map[string]int{}}
}

// count reports false for a line that must be written now. It counts others.
func (r *repeats) count(subject string, handler slog.Handler, record slog.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	key := repeatKey{message: record.Message, subject: subject}
	line := r.lines[key]
	if line == nil && r.subjects[key.message] >= maxSubjects {
		key = repeatKey{message: record.Message, others: true}
		line = r.lines[key]
	}
	if line == nil {
		r.subjects[key.message]++
		r.lines[key] = &repeat{timer: time.AfterFunc(repeatInterval, func() { r.expire(key) })}
		return false
	}
	line.times++
	line.handler, line.record = handler, record
	return true
}

// expire writes a line as its interval is over, or forgets it if it did not repeat.
func (r *repeats) expire(key repeatKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[key]
	if line == nil { // closed since
		return
	}
	if line.times > 0 {
		line.write(key)
		line.timer.Reset(repeatInterval)
		return
	}
	delete(r.lines, key)
	if r.subjects[key.message]--; r.subjects[key.message] == 0 {
		delete(r.subjects, key.message)
	}
}

// close writes all lines that were counted.
func (r *repeats) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for key, line := range r.lines {
		line.timer.Stop()
		if line.times > 0 {
			line.write(key)
		}
	}
	clear(r.lines)
}

// write writes how often a line was repeated, and begins anew.
func (l *repeat) write(key repeatKey) {
	record := l.record.Clone()
	record.Time = time.Now()
	record.AddAttrs(slog.Int("times", l.times))
	if key.others {
		record.AddAttrs(slog.Bool("others", true))
	}
	_ = l.handler.Handle(context.Background(), record) // a log that cannot be written stops nothing
	*l = repeat{timer: l.timer}
}
