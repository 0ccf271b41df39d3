package jobs

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"routemaster/client"
)

// Handler does a job. Nil reports that it succeeded, an error that it failed; one of [Final] that
// it is not to be tried again. The context is done when the deadline has passed or the job was
// cancelled: the result hardly counts then.
type Handler func(ctx context.Context, job Fetched) error

// Final marks the error of a job that must not be tried again.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// WorkOptions say how [Jobs.Work] works.
type WorkOptions struct {
	// Concurrency is how many jobs are done at once, 0 for one.
	Concurrency int
	// Wait is how long a request waits for jobs, 0 for 5 s, and so for how long Work may go on to wait
	// after it was stopped. It is at most 30 s, and shorter than the timeout of the HTTP client.
	Wait time.Duration
	// OnError, if given, is called with each error of a handler and of a request, from several
	// goroutines. The job is the zero one if a fetch failed.
	OnError func(job Fetched, err error)
}

const (
	defaultWait = 5 * time.Second
	// maxFetch is how many jobs a request may take.
	maxFetch = 100
	// firstPause and maxPause are between requests that failed. The client has sent each again before.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// maxError is how many bytes of an error the bus keeps.
	maxError = 4096
	// maxExtendInterval bounds how late a cancelled job is noticed.
	maxExtendInterval = 10 * time.Second
)

// worker does the jobs of a type.
type worker struct {
	*Jobs
	name    string
	timeout time.Duration
	handle  Handler
	options WorkOptions
	// slots has an element for each job in hand.
	slots   chan struct{}
	running sync.WaitGroup
}

// Work fetches the jobs of a type and does them until the context is done. Then it fetches no more,
// finishes the jobs in hand, including the last fetch, and returns nil: no job is lost. It extends
// deadlines while handlers run, and repeats reports until the bus has accepted or refused them;
// after the stop, until the deadline at most. It returns an error if it cannot ask the bus for the
// type at first, or if the bus refuses later to give it jobs.
func (j *Jobs) Work(ctx context.Context, name string, handle Handler, options WorkOptions) error {
	t, err := j.Type(ctx, name)
	if err != nil {
		return err
	}
	options.Concurrency, options.Wait = max(options.Concurrency, 1), cmp.Or(options.Wait, defaultWait)
	w := &worker{
		Jobs: j, name: name, timeout: t.Timeout.Duration(), handle: handle, options: options,
		slots: make(chan struct{}, options.Concurrency),
	}
	defer w.running.Wait()
	return w.run(ctx)
}

// run fetches jobs, as many as there are free slots, and starts them.
func (w *worker) run(ctx context.Context) error {
	pause := firstPause
	for {
		select { // wait for a free slot
		case w.slots <- struct{}{}:
			<-w.slots // only this goroutine takes slots
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil
		}
		free := min(cap(w.slots)-len(w.slots), maxFetch)
		// A fetch that was given up could have taken jobs.
		fetched, err := w.Fetch(context.WithoutCancel(ctx), w.name, free, w.options.Wait)
		if err != nil {
			w.failed(Fetched{}, err)
			if !client.IsTemporary(err) {
				return err
			}
			sleep(ctx, pause)
			pause = min(2*pause, maxPause)
			continue
		}
		pause = firstPause
		deadline := time.Now().Add(w.timeout)
		for _, job := range fetched {
			w.slots <- struct{}{}
			w.running.Go(func() {
				defer func() { <-w.slots }()
				w.do(ctx, job, deadline)
			})
		}
	}
}

// errEnded is the cause of a handler's context that is done because the bus does not wait for the
// attempt any more.
var errEnded = errors.New("the job was cancelled, or the attempt has ended")

// do does a job and reports on it.
func (w *worker) do(stop context.Context, job Fetched, deadline time.Time) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(stop))
	extended := make(chan time.Time)
	go func() { extended <- w.extend(ctx, cancel, job, deadline) }()
	err := w.handle(ctx, job)
	ended := errors.Is(context.Cause(ctx), errEnded)
	cancel(nil)
	deadline = <-extended
	if err != nil {
		w.failed(job, err)
	}
	if ended {
		return // a report would be refused
	}
	_, final := errors.AsType[*finalError](err)
	report := Report{Attempt: job.Attempt, Succeeded: err == nil, Final: final}
	if err != nil {
		report.Error = err.Error()
		report.Error = report.Error[:min(len(report.Error), maxError)]
	}
	w.report(stop, job, report, deadline)
}

// extend moves the deadline of an attempt until the context is done, and returns the last. It
// cancels the context when the deadline has passed, by the clock of this process, or the bus does
// not wait for the attempt any more.
func (w *worker) extend(ctx context.Context, cancel context.CancelCauseFunc, job Fetched, deadline time.Time) time.Time {
	interval := min(w.timeout/3, maxExtendInterval)
	for {
		sleep(ctx, min(interval, time.Until(deadline)))
		if ctx.Err() != nil {
			return deadline
		}
		if !time.Now().Before(deadline) {
			cancel(context.DeadlineExceeded)
			return deadline
		}
		sent := time.Now()
		limited, done := context.WithDeadline(ctx, deadline)
		_, err := w.Extend(limited, w.name, job.ID, job.Attempt, w.timeout)
		done()
		switch {
		case err == nil:
			deadline = sent.Add(w.timeout)
		case isOver(err):
			cancel(errEnded)
			return deadline
		}
	}
}

// isOver reports whether the bus has refused to extend an attempt because it does not wait for that
// any more.
func isOver(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && (refused.Status == http.StatusNotFound || refused.Status == http.StatusConflict)
}

// report repeats a report until the bus has taken or refused it. Once the worker is stopped the
// deadline ends that, too.
func (w *worker) report(stop context.Context, job Fetched, r Report, deadline time.Time) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := w.Report(context.WithoutCancel(stop), w.name, job.ID, r)
		if err == nil {
			return
		}
		w.failed(job, err)
		if !client.IsTemporary(err) || stop.Err() != nil && time.Now().After(deadline) {
			return
		}
		sleep(context.WithoutCancel(stop), pause)
	}
}

func (w *worker) failed(job Fetched, err error) {
	if w.options.OnError != nil {
		w.options.OnError(job, err)
	}
}

// sleep waits until a time has passed or the context is done.
func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
