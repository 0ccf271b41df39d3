package rest

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"routemaster/internal/web/auth"
)

// requestInfo is what the server knows about a request while it serves it. It is the request's
// context, too, so that a publish costs one allocation for both.
type requestInfo struct {
	context.Context
	// id is in all log lines about the request and in its response, as the value of a header.
	id [1]string
	// client is who sent the request, set by [Service.Authenticate].
	client auth.Client
}

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
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, identified(w, r)) })
}

// identified returns a request with its ID, which the response gets, too.
func identified(w http.ResponseWriter, r *http.Request) *http.Request {
	info := &requestInfo{Context: r.Context(), id: [1]string{chooseID(r)}}
	header := w.Header()
	header[requestIDHeader] = info.id[:]
	header["Server"] = serverHeader
	return r.WithContext(info)
}

// Observe gives every request an ID, logs it at DEBUG, and traces it. If neither is on it does next
// to nothing, since every publish passes here.
func (s *Service) Observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = identified(w, r)
		if s.Tracer != nil || s.Log.Enabled(r.Context(), slog.LevelDebug) {
			s.serveObserved(next, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveObserved serves a request, then logs and traces it. It names the route instead of the path,
// which may contain a token.
func (s *Service) serveObserved(next http.Handler, w http.ResponseWriter, r *http.Request) {
	start := s.Now()
	ctx, span := s.Tracer.StartRequest(r.Context(), r.Header)
	if span != nil {
		r = r.WithContext(ctx)
	}
	response := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	defer func() { // also when the handler aborts the connection
		fields := append(requestFields(r), slog.Int("status", response.Status()))
		failure := ""
		if response.Status() >= http.StatusInternalServerError {
			failure = http.StatusText(response.Status())
		}
		span.End(r.Method+" "+routeOf(r), failure, fields...)
		s.Log.LogAttrs(r.Context(), slog.LevelDebug, "request served",
			append(fields, slog.Duration("duration", s.Now().Sub(start).Round(time.Microsecond)))...)
	}()
	next.ServeHTTP(response, r)
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
