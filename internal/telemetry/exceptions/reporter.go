package exceptions

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxReports is how many reports may wait for the service. Those beyond are dropped, and stand in the log alone.
	maxReports = 100
	// sendWithin bounds one report, and drainWithin the reports that wait when the program ends: one more may just have begun.
	sendWithin  = 2 * time.Second
	drainWithin = 3 * time.Second
)

// exception is something that must not happen.
type exception struct {
	// event says what happened, always in the same words; class is the kind of the reason, and text the reason.
	event, class, text string
	stack              []uintptr
	fields             []slog.Attr
	at                 time.Time
}

// frames calls f with each frame of the stack, the innermost first.
func (e *exception) frames(f func(runtime.Frame)) {
	frames := runtime.CallersFrames(e.stack)
	for more := len(e.stack) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		f(frame)
	}
}

// Reporter logs exceptions, and reports them to a service if there is one. Whoever has an exception never waits for the service: reports
// wait in memory, and are dropped when there are too many. It is safe for concurrent use; nil only logs.
type Reporter struct {
	log     *slog.Logger
	service string
	sender  sender // nil when there is only the log
	scrub   func(string) string

	queue    chan *exception
	dropped  atomic.Int64 // since none waited
	closing  chan struct{}
	deadline time.Time // for the last report to begin; set before closing is closed
	close    sync.Once
	running  sync.WaitGroup
}

// Options say what a [Reporter] reports, and where.
type Options struct {
	Service Service
	// Program and Version are what reports come from.
	Program, Version string
	// Secrets are texts that no report may have.
	Secrets []string
	// Transport, if given, takes requests to Sentry and to New Relic.
	Transport http.RoundTripper
}

// NewReporter makes a reporter, and starts its goroutine if there is a service. The error says what is wrong with the
// service, and shows no secret.
func NewReporter(o Options, log *slog.Logger) (*Reporter, error) {
	sender, err := newSender(o.Service, o.Program, o.Version, o.Transport)
	if err != nil {
		return nil, err
	}
	secrets := append(slices.Clip(o.Secrets), o.Service.URL)
	if key, _, err := o.Service.parse(); err == nil {
		secrets = append(secrets, key)
	}
	r := &Reporter{
		log: log, service: o.Service.Name, sender: sender, scrub: newScrubber(secrets),
		queue: make(chan *exception, maxReports), closing: make(chan struct{}),
	}
	if sender != nil {
		r.running.Go(r.run)
	}
	return r, nil
}

// Error logs an error that was not expected, and reports it. Log may know more than the report should.
func (r *Reporter) Error(log *slog.Logger, event string, err error, fields ...slog.Attr) {
	log.LogAttrs(context.Background(), slog.LevelError, event, append(slices.Clip(fields), slog.Any("error", err))...)
	if r != nil && r.sender != nil {
		r.enqueue(&exception{event: event, class: fmt.Sprintf("%T", err), text: err.Error(), stack: callers(), fields: fields, at: time.Now()})
	}
}

// Panic logs what was recovered from a panic, and reports it. The deferred function that recovered it must call it, for the stack.
func (r *Reporter) Panic(log *slog.Logger, event string, reason any, fields ...slog.Attr) {
	text := fmt.Sprint(reason)
	log.LogAttrs(context.Background(), slog.LevelError, event,
		append(slices.Clip(fields), slog.String("panic", text), slog.String("stack", string(debug.Stack())))...)
	if r != nil && r.sender != nil {
		r.enqueue(&exception{event: event, class: "panic", text: text, stack: callers(), fields: fields, at: time.Now()})
	}
}

func (r *Reporter) enqueue(e *exception) {
	e.text, e.fields = r.scrub(e.text), slices.Clone(e.fields)
	for i, field := range e.fields {
		e.fields[i] = slog.String(field.Key, r.scrub(field.Value.String()))
	}
	select {
	case r.queue <- e:
	default:
		if r.dropped.Add(1) == 1 {
			r.log.Warn("reports of exceptions are dropped: too many wait", "service", r.service)
		}
	}
}

// Close sends what is waiting, as far as that is quickly done, and ends the reporter. Later reports are only logged.
func (r *Reporter) Close() {
	r.close.Do(func() {
		r.deadline = time.Now().Add(drainWithin)
		close(r.closing)
	})
	r.running.Wait()
}

// run sends reports, one at a time, until the reporter is closed.
func (r *Reporter) run() {
	defer r.sender.close()
	failing := false
	for !r.isClosing() { // asked for by itself: of two things that are ready select takes either
		select {
		case e := <-r.queue:
			failing = r.tell(failing, r.send(e))
		case <-r.closing:
		}
	}
	for time.Now().Before(r.deadline) {
		select {
		case e := <-r.queue:
			failing = r.tell(failing, r.send(e))
		default:
			return
		}
	}
}

func (r *Reporter) isClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

// send sends a report. A panic of the service's client must not end the program.
func (r *Reporter) send(e *exception) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the client of %s panicked: %v", r.service, reason)
		}
	}()
	return r.sender.send(e)
}

// tell logs each change between reports that arrive and reports that do not, and the end of an overflow.
func (r *Reporter) tell(failing bool, err error) bool {
	if len(r.queue) == 0 {
		if dropped := r.dropped.Swap(0); dropped > 0 {
			r.log.Warn("no report of an exception waits any more", "service", r.service, "dropped", dropped)
		}
	}
	switch {
	case err != nil && !failing:
		r.log.Warn("reports of exceptions do not arrive", "service", r.service, "error", r.scrub(err.Error()))
	case err == nil && failing:
		r.log.Info("reports of exceptions arrive again", "service", r.service)
	}
	return err != nil
}

// callers is the stack of whoever calls the reporter, or, in a panic, of what panicked.
func callers() []uintptr {
	const reporting = 3 // runtime.Callers, this function and the reporter's
	stack := make([]uintptr, 64)
	stack = stack[:runtime.Callers(reporting, stack)]
	panicked := slices.IndexFunc(stack, func(pc uintptr) bool {
		f := runtime.FuncForPC(pc - 1)
		return f != nil && f.Name() == "runtime.gopanic"
	})
	return stack[panicked+1:]
}
