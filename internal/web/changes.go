package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"routemaster/internal/bus"
)

// changed answers 204 and logs who changed what, or answers with an error.
func (s *Server) changed(w http.ResponseWriter, r *http.Request, err error, what string, about ...slog.Attr) {
	if err == nil {
		s.logChange(r, what, about...)
	}
	s.answer(w, r, err)
}

// logChange logs who changed what. No token may be in it.
func (s *Server) logChange(r *http.Request, what string, about ...slog.Attr) {
	x := exchangeOf(r)
	fields := append([]slog.Attr{slog.String("request_id", x.id), slog.String("client", x.clientName())}, about...)
	s.log.LogAttrs(r.Context(), slog.LevelInfo, what, fields...)
}

// nameField is the client that a change is about, as others may know it.
func nameField(token bus.Token, name bus.ClientName) slog.Attr {
	return slog.String("name", string(bus.PublicName(token, name)))
}

// hostOf is the host of a callback, whose path may hold a secret.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Host
}

const (
	// refusalsEvery is the pause between two lines about the same source.
	refusalsEvery = time.Second
	// maxSources bounds the sources that get a line each, and with it memory and log.
	maxSources = 100
	// otherSources stands for all beyond them.
	otherSources = "others"
)

// refusalLog logs refused credentials: a line a source and interval, with a count.
type refusalLog struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[string]int
}

// add counts a refusal.
func (l *refusalLog) add(r *http.Request) {
	source := sourceOf(r.RemoteAddr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	if _, known := l.counts[source]; !known && len(l.counts) >= maxSources {
		source = otherSources
	}
	l.counts[source]++
}

// flush logs what was refused since the last time.
func (l *refusalLog) flush() {
	l.mu.Lock()
	counts := l.counts
	l.counts = nil
	l.mu.Unlock()
	for source, count := range counts {
		l.log.Info("refused credentials", "source", source, "count", count)
	}
}

// run flushes until the context is done, and once more.
func (l *refusalLog) run(ctx context.Context) {
	ticker := time.NewTicker(refusalsEvery)
	defer ticker.Stop()
	defer l.flush()
	for {
		select {
		case <-ticker.C:
			l.flush()
		case <-ctx.Done():
			return
		}
	}
}

// sourceOf is where a request came from: an IPv4 address, or the network of an IPv6 address, since a host may have
// all addresses of a /64.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return "unknown"
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}
