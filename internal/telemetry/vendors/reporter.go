package vendors

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
	// maxReports is how many reports may be queued. Further ones are dropped, and are only logged.
	maxReports = 100
	// sendTimeout bounds one report.
	sendTimeout = 2 * time.Second
	// drainTimeout bounds when the last queued report may begin after a close.
	drainTimeout = 3 * time.Second
)

// exception is one report.
type exception struct {
	event  string // what happened, always in the same words
	class  string // the kind of the reason
	text   string // the reason
	stack  []uintptr
	fields []slog.Attr
	at     time.Time
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

// Reporter logs exceptions, and reports them to a service if there is one. Its methods do not
// wait for the service: reports are queued in memory, and dropped when the queue is full. It is
// safe for concurrent use. A nil Reporter only logs.
type Reporter struct {
	log     *slog.Logger
	service string
	sender  sender // nil without a service
	scrub   func(string) string

	queue    chan *exception
	dropped  atomic.Int64 // since the queue was last empty
	closing  chan struct{}
	deadline time.Time // for the last report to begin; set before closing is closed
	close    sync.Once
	running  sync.WaitGroup
}

// Options configure a [Reporter].
type Options struct {
	Service ExceptionService
	// Program and Version name the source of the reports.
	Program, Version string
	// Secrets are texts that are removed from reports.
	Secrets []string
	// Transport, if not nil, takes the requests to Sentry and to New Relic.
	Transport http.RoundTripper
}

// NewReporter makes a reporter. If there is a service, it starts a goroutine that [Reporter.Close]
// ends. Its error describes an invalid URL of the service, without secrets.
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

// Error logs an unexpected error, and reports it. The report has the given fields, but not those
// that log adds.
func (r *Reporter) Error(log *slog.Logger, event string, err error, fields ...slog.Attr) {
	log.LogAttrs(context.Background(), slog.LevelError, event, append(slices.Clip(fields), slog.Any("error", err))...)
	if r != nil && r.sender != nil {
		r.enqueue(&exception{event: event, class: fmt.Sprintf("%T", err), text: err.Error(), stack: callers(), fields: fields, at: time.Now()})
	}
}

// Panic logs a recovered panic, and reports it. Call it from the deferred function that recovers,
// so that the stack is the panic's.
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
			r.log.Warn("dropping exception reports: too many are queued", "service", r.service)
		}
	}
}

// Close sends queued reports for up to 3 s, and ends the reporter. Later exceptions are only
// logged.
func (r *Reporter) Close() {
	r.close.Do(func() {
		r.deadline = time.Now().Add(drainTimeout)
		close(r.closing)
	})
	r.running.Wait()
}

// run sends reports, one at a time, until the reporter is closed.
func (r *Reporter) run() {
	defer r.sender.close()
	failing := false
	for !r.isClosing() { // select may prefer the queue although closing is closed
		select {
		case e := <-r.queue:
			failing = r.logChange(failing, r.send(e))
		case <-r.closing:
		}
	}
	for time.Now().Before(r.deadline) {
		select {
		case e := <-r.queue:
			failing = r.logChange(failing, r.send(e))
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

// send sends a report. A panic of the service's client is an error.
func (r *Reporter) send(e *exception) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the client of %s panicked: %v", r.service, reason)
		}
	}()
	return r.sender.send(e)
}

// logChange logs when reports begin to fail and when they succeed again, and when the queue has
// been emptied after reports were dropped. It returns whether reports now fail.
func (r *Reporter) logChange(failing bool, err error) bool {
	if len(r.queue) == 0 {
		if dropped := r.dropped.Swap(0); dropped > 0 {
			r.log.Warn("exception reports are no longer dropped", "service", r.service, "dropped", dropped)
		}
	}
	switch {
	case err != nil && !failing:
		r.log.Warn("exception reports cannot be sent", "service", r.service, "error", r.scrub(err.Error()))
	case err == nil && failing:
		r.log.Info("exception reports are sent again", "service", r.service)
	}
	return err != nil
}

// callers returns the stack of the reporter's caller or, during a panic, the panic's.
func callers() []uintptr {
	const own = 3 // runtime.Callers, this function and the reporter's method
	stack := make([]uintptr, 64)
	stack = stack[:runtime.Callers(own, stack)]
	panicked := slices.IndexFunc(stack, func(pc uintptr) bool {
		f := runtime.FuncForPC(pc - 1)
		return f != nil && f.Name() == "runtime.gopanic"
	})
	return stack[panicked+1:]
}
