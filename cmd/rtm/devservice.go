package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/terminal"
)

// devJobType is the job type that rtm dev has ready.
const devJobType = "paint-widgets"

// devService is the built-in service of rtm dev. It receives every job whose type has no URL, and
// every webhook and feed below {placeholders.service}.
type devService struct {
	listener net.Listener
	password string
	server   http.Server
	serving  sync.WaitGroup
	// taken has every job, in order.
	taken chan devJob
	// requests has the requests other than jobs, in order.
	requests chan string
}

// devJob is a job as it came to the service.
type devJob struct {
	name, id string
	attempt  int
	body     json.RawMessage
}

// newDevService listens on loopback, and serves until it is closed. It takes no job once the
// context is done.
func newDevService(ctx context.Context) (*devService, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &devService{listener: listener, password: rand.Text(), taken: make(chan devJob), requests: make(chan string)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs/{name}/{id}", s.take)
	mux.HandleFunc("/", s.answer)
	s.server = http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	s.serving.Go(func() { _ = s.server.Serve(listener) }) // it ends with close
	return s, nil
}

func (s *devService) url() string { return "http://" + s.listener.Addr().String() }

func (s *devService) close() {
	_ = s.server.Close()
	s.serving.Wait()
}

// take passes a job on to the goroutine that does it, and then responds that the service has it.
func (s *devService) take(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != "jobs" || password != s.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	var sent struct{ Attempt int }
	if err == nil {
		err = json.Unmarshal(body, &sent)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case s.taken <- devJob{r.PathValue("name"), r.PathValue("id"), sent.Attempt, body}:
		w.WriteHeader(http.StatusAccepted)
	case <-r.Context().Done():
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// answer passes a request on to be printed, and responds with a body that both webhooks and feeds
// accept.
func (s *devService) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := r.Method + " " + r.URL.RequestURI()
	if token := r.Header.Get("X-Idempotency-Token"); token != "" {
		request += " (X-Idempotency-Token: " + token + ")"
	}
	if len(body) > 0 {
		request += ": " + string(body)
	}
	select {
	case s.requests <- request:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	case <-r.Context().Done():
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// showJob enqueues a job, and prints its progress.
func (d *devBus) showJob(ctx context.Context, queue *jobs.Jobs) error {
	job := jobs.NewJob{ID: jobs.NewID(), Data: json.RawMessage(`{"widget":1,"colour":"blue"}`)}
	fmt.Fprintf(d.out, "\n-> enqueued as a job of %s: %s\n", devJobType, job.Data)
	enqueued := time.Now()
	if _, err := queue.Enqueue(ctx, devJobType, job); err != nil {
		return err
	}
	for {
		select {
		case taken := <-d.jobs:
			d.do(ctx, queue, taken)
			if taken.id != job.ID {
				continue // an earlier run has left it in Redis
			}
			archived, err := queue.Job(ctx, job.ID)
			if err == nil {
				fmt.Fprintf(d.out, "   archived as %s after %v\n", archived.Status, time.Since(enqueued).Round(100*time.Microsecond))
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addDevJobType makes the job type, or makes the one that an earlier run left in Redis as it was,
// whatever has been changed of it since. Jobs that were fetched then may be in progress still: the
// limit is raised by these, so that new ones need not wait for their deadlines.
func addDevJobType(ctx context.Context, queue *jobs.Jobs) error {
	t := jobs.Type{Name: devJobType, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 10, URL: new("")}
	left, err := queue.Type(ctx, devJobType)
	if isNotFound(err) {
		_, err = queue.AddType(ctx, t)
		return err
	}
	if err != nil {
		return err
	}
	_, err = queue.ChangeType(ctx, devJobType, map[string]any{
		"delivery_strategy": t.Strategy, "attempts": t.Attempts, "concurrency": int64(t.Concurrency) + left.Counts.InProgress, "url": t.URL,
		"paused": false, "timeout": nil, "retention": nil, "schedule": nil,
	})
	return err
}

func isNotFound(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusNotFound
}

// do prints a job, which is all the work, and reports that it succeeded.
func (d *devBus) do(ctx context.Context, queue *jobs.Jobs, job devJob) {
	fmt.Fprintf(d.out, "<- POST /v1/jobs/%s/%s: %s\n", job.name, job.id, terminal.JSON(job.body))
	err := queue.Report(ctx, job.name, job.id, jobs.Report{Attempt: job.attempt, Succeeded: true})
	if err != nil {
		fmt.Fprintf(d.out, "-> report refused: %v\n", err)
		return
	}
	fmt.Fprintf(d.out, "-> reported: attempt %d succeeded\n", job.attempt)
}
