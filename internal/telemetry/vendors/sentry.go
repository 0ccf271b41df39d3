package vendors

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"

	"github.com/getsentry/sentry-go"
)

// sentryClient reports to Sentry.
type sentryClient struct {
	client *sentry.Client
	http   *http.Client
	last   *lastResult
}

func checkDSN(dsn string) error {
	_, err := sentry.NewDsn(dsn)
	return err
}

func newSentry(dsn, version string, transport http.RoundTripper) (sender, error) {
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	last := &lastResult{transport: transport}
	s := &sentryClient{http: &http.Client{Transport: last, Timeout: sendTimeout}, last: last}
	var err error
	s.client, err = sentry.NewClient(sentry.ClientOptions{
		Dsn:        dsn,
		Release:    version,
		Transport:  sentry.NewHTTPSyncTransport(), // the reporter has a queue
		HTTPClient: s.http,
		// Integrations add modules, environment and source code to reports.
		Integrations:         func([]sentry.Integration) []sentry.Integration { return nil },
		DisableClientReports: true,
	})
	return s, err
}

func (s *sentryClient) send(e *exception) error {
	event := sentry.NewEvent()
	event.Level, event.Timestamp, event.Message = sentry.LevelError, e.at, e.event
	trace := &sentry.Stacktrace{}
	e.frames(func(f runtime.Frame) { trace.Frames = append(trace.Frames, sentry.NewFrame(f)) })
	slices.Reverse(trace.Frames) // Sentry has the outermost first
	event.Exception = []sentry.Exception{{Type: e.class, Value: e.text, Stacktrace: trace}}
	event.Contexts = map[string]sentry.Context{"routemaster": attributes(e.fields)}
	s.last.err = errNotSent
	s.client.CaptureEvent(event, nil, nil)
	return s.last.err
}

// errNotSent is the result if the client made no request: it drops reports while Sentry limits
// the rate.
var errNotSent = errors.New("it limits the rate of reports")

func (s *sentryClient) close() {
	s.client.Close()
	s.http.CloseIdleConnections()
}

// attributes returns fields as services take them.
func attributes(fields []slog.Attr) map[string]any {
	values := map[string]any{}
	for _, field := range fields {
		values[field.Key] = field.Value.String()
	}
	return values
}

// lastResult notes the result of the last request, which Sentry's client does not return.
type lastResult struct {
	transport http.RoundTripper
	err       error
}

// RoundTrip is part of [http.RoundTripper].
func (l *lastResult) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.transport.RoundTrip(r)
	if l.err = err; err == nil && resp.StatusCode > 299 {
		l.err = fmt.Errorf("it answered %s", resp.Status)
	}
	return resp, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport.
func (l *lastResult) CloseIdleConnections() {
	if t, ok := l.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
