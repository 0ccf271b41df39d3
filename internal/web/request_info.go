package web

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"routemaster/internal/web/auth"
)

// exchange is what is known of a request while it is answered.
type requestInfo struct {
	// id is the same in the request's lines of the log and in its answer.
	id string
	// client is who sent it, once [Server.authenticate] has found out.
	client auth.Client
}

type requestInfoKey struct{}

func requestInfoOf(r *http.Request) *requestInfo {
	return r.Context().Value(requestInfoKey{}).(*requestInfo)
}

// observe gives every request its ID, and logs every answer at DEBUG. Above that, and without traces, it does next to nothing: it stands in the way
// of every publish.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &requestInfo{id: requestID(r)}
		w.Header()[requestIDHeader] = []string{x.id}
		r = r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, x))
		if s.config.Tracer != nil || s.log.Enabled(r.Context(), slog.LevelDebug) {
			s.follow(next, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// follow has a request answered, and logs and traces the answer. It names the route and not the path, which may hold a token.
func (s *Server) follow(next http.Handler, w http.ResponseWriter, r *http.Request) {
	start := s.now()
	ctx, span := s.config.Tracer.StartRequest(r.Context(), r.Header)
	if span != nil {
		r = r.WithContext(ctx)
	}
	answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	defer func() { // also when the handler gives its connection up
		fields := append(requestFields(r), slog.Int("status", answer.Status()))
		failure := ""
		if answer.Status() >= http.StatusInternalServerError {
			failure = http.StatusText(answer.Status())
		}
		span.End(r.Method+" "+routeOf(r), failure, fields...)
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "answered a request",
			append(fields, slog.Duration("duration", s.now().Sub(start).Round(time.Microsecond)))...)
	}()
	next.ServeHTTP(answer, r)
}

// routeOf is the pattern of a request's route, empty if there is none.
func routeOf(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }

// requestFields tell which request a line of the log, or a report, is about.
func requestFields(r *http.Request) []slog.Attr {
	x := requestInfoOf(r)
	return []slog.Attr{
		slog.String("request_id", x.id), slog.String("method", r.Method), slog.String("route", routeOf(r)), slog.String("client", string(x.client.PublicName())),
	}
}

const (
	requestIDHeader = "X-Request-Id"
	// maxRequestID is the most characters of an ID that a client or a proxy chose.
	maxRequestID = 128
)

// requestID is the ID that came with a request if it is one, else a new one.
func requestID(r *http.Request) string {
	if values := r.Header[requestIDHeader]; len(values) == 1 && isVisible(values[0], maxRequestID) {
		return values[0]
	}
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], rand.Uint64())
	return hex.EncodeToString(id[:])
}

// isVisible reports whether text is 1 to so many visible ASCII characters.
func isVisible(text string, most int) bool {
	visible := len(text) >= 1 && len(text) <= most
	for i := 0; i < len(text) && visible; i++ {
		visible = text[i] > ' ' && text[i] < 0x7f
	}
	return visible
}
