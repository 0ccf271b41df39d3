package vendors

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime"
	"strconv"

	"github.com/honeybadger-io/honeybadger-go"
)

// honeybadgerClient reports to Honeybadger. The library's client cannot be ended fully: one idle
// goroutine stays.
type honeybadgerClient struct {
	client *honeybadger.Client
	stop   context.CancelFunc
}

func newHoneybadger(key string, at *url.URL) sender {
	ctx, stop := context.WithCancel(context.Background())
	return &honeybadgerClient{stop: stop, client: honeybadger.New(honeybadger.Configuration{
		APIKey:             key,
		Endpoint:           at.String(),
		Sync:               true, // the reporter has a queue
		Timeout:            sendTimeout,
		Logger:             log.New(io.Discard, "", 0), // the reporter logs failures
		Context:            ctx,
		EventsMaxQueueSize: 1, // of a feature that is not used; allocated at the start
		EventsBatchSize:    1,
	})}
}

func (h *honeybadgerClient) send(e *exception) error {
	report := honeybadger.Error{Message: e.event + ": " + e.text, Class: e.class}
	e.frames(func(f runtime.Frame) {
		report.Stack = append(report.Stack, &honeybadger.Frame{Number: strconv.Itoa(f.Line), File: f.File, Method: f.Function})
	})
	_, err := h.client.Notify(report, honeybadger.Context(attributes(e.fields)))
	return err
}

func (h *honeybadgerClient) close() {
	h.stop()
	http.DefaultClient.CloseIdleConnections() // its client has no transport of its own
}
