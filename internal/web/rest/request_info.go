package rest

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"routemaster/internal/telemetry"
)

// requestInfo is the server's record of a request while it serves it. It is the request's context,
// too, so that a publish costs one allocation for both.
type requestInfo struct {
	context.Context
	// id is in all log lines about the request and in its response, as the value of a header.
	id [1]string
	// client is the sender of the request, set by [Service.Authenticate].
	client Client
	// response wraps the handlers' response, for [Service.Observe].
	response observedResponse
}

// observedResponse notes the status of a response, 0 while there is none.
type observedResponse struct {
	http.ResponseWriter
	status int
}

func (o *observedResponse) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *observedResponse) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	return o.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (o *observedResponse) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush is part of [http.Flusher].
func (o *observedResponse) Flush() { _ = http.NewResponseController(o.ResponseWriter).Flush() }

type requestInfoKey struct{}

// Value implements [context.Context].
func (i *requestInfo) Value(key any) any {
	if key == (requestInfoKey{}) {
		return i
	}
	return i.Context.Value(key)
}

func requestInfoOf(r *http.Request) *requestInfo {
	return r.Context().Value(requestInfoKey{}).(*requestInfo)
}

// serverHeader is the Server header of all responses; clients of jobs expect one.
var serverHeader = []string{"routemaster"}

// Identify gives every request an ID.
func Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, _ = identified(w, r)
		next.ServeHTTP(w, r)
	})
}

// identified returns a request with its ID, which the response gets, too.
func identified(w http.ResponseWriter, r *http.Request) (*http.Request, *requestInfo) {
	info := &requestInfo{Context: r.Context(), id: [1]string{chooseID(r)}}
	header := w.Header()
	header[requestIDHeader] = info.id[:]
	header["Server"] = serverHeader
	return r.WithContext(info), info
}

// Observe gives every request an ID, counts it, logs it at DEBUG, and traces it. It does little
// unless these are on, and allocates nothing but the ID and its context: every publish passes here.
func (s *Service) Observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		r, info := identified(w, r)
		info.response.ResponseWriter = w
		ctx, span := s.Tracer.StartRequest(r.Context(), r.Header)
		if span != nil {
			r = r.WithContext(ctx)
		}
		defer s.observed(r, info, span, start) // also when the handler aborts the connection
		next.ServeHTTP(&info.response, r)
	})
}

// observed counts an answered request, then logs and traces it. A request without an answer counts
// as 200, unless the client has left. The log names the route instead of the path, which may
// contain a token: the router notes it in the request, so r must be the one passed to the router.
func (s *Service) observed(r *http.Request, info *requestInfo, span *telemetry.Span, start time.Time) {
	took, status := time.Since(start), info.response.status
	answered := status
	if status == 0 && r.Context().Err() == nil {
		answered = http.StatusOK
	}
	route, method := cmp.Or(routeOf(r), noRoute), knownMethod(r.Method)
	class := telemetry.StatusClasses[min(max(answered/100, 0), len(telemetry.StatusClasses)-1)]
	s.Recorder.Count(telemetry.HTTPRequests, 1, route, method, class)
	s.Recorder.Took(telemetry.HTTPDuration, took, route, method)
	s.Refusals.count(r, answered)
	if span == nil && !s.Log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	fields := append(requestFields(r), slog.Int("status", status))
	failure := ""
	if status >= http.StatusInternalServerError {
		failure = http.StatusText(status)
	}
	span.End(r.Method+" "+routeOf(r), failure, fields...)
	s.Log.LogAttrs(r.Context(), slog.LevelDebug, "request served", append(fields, slog.Duration("duration", took.Round(time.Microsecond)))...)
}

// routeOf returns the pattern of a request's route, empty if there is none.
func routeOf(r *http.Request) string { return r.Pattern }

// requestFields identify the request that a log line or a report is about.
func requestFields(r *http.Request) []slog.Attr {
	info := requestInfoOf(r)
	return []slog.Attr{
		slog.String("request_id", info.id[0]),
		slog.String("method", r.Method),
		slog.String("route", routeOf(r)),
		slog.String("client", string(info.client.PublicName())),
	}
}

const (
	requestIDHeader = "X-Request-Id"
	// maxRequestID is the maximum length of an ID that a client or a proxy chose.
	maxRequestID = 128
)

// RequestID returns the ID of a request, which is in all log lines about it.
func RequestID(r *http.Request) string { return requestInfoOf(r).id[0] }

// chooseID returns the ID that a request came with, or a new one if it has none that is valid.
func chooseID(r *http.Request) string {
	if values := r.Header[requestIDHeader]; len(values) == 1 && isVisible(values[0], maxRequestID) {
		return values[0]
	}
	var random [8]byte
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	var id [2 * len(random)]byte
	hex.Encode(id[:], random[:])
	return string(id[:])
}

// isVisible reports whether a text consists of 1 to maxLen visible ASCII characters.
func isVisible(text string, maxLen int) bool {
	visible := len(text) >= 1 && len(text) <= maxLen
	for i := 0; i < len(text) && visible; i++ {
		visible = text[i] > ' ' && text[i] < 0x7f
	}
	return visible
}

// noRoute is the route of requests that match none: their paths may have secrets.
const noRoute = "(none)"

// knownMethod returns a method of HTTP, or a placeholder for invented ones.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return telemetry.Other
}

// Refusals counts the refused requests of this process.
type Refusals struct {
	// Credentials are answers of 401 to requests that had some, Requests are answers of 429.
	Credentials, Requests atomic.Int64
}

func (f *Refusals) count(r *http.Request, status int) {
	switch {
	case f == nil:
	case status == http.StatusUnauthorized && r.Header["Authorization"] != nil:
		f.Credentials.Add(1)
	case status == http.StatusTooManyRequests:
		f.Requests.Add(1)
	}
}
