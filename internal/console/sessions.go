package console

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// sessions lists and ends logins, for root. Ending one is logged, like beginning one.
type sessions struct {
	*Store
	log *slog.Logger
	// person is the name given at the login.
	person string
}

// EndID ends a session.
func (s sessions) EndID(ctx context.Context, id string) error {
	err := s.Store.EndID(ctx, id)
	if err == nil {
		s.log.Info("root ended a login to the console", "person", s.person)
	}
	return err
}

// EndAll ends all sessions.
func (s sessions) EndAll(ctx context.Context) error {
	err := s.Store.EndAll(ctx)
	if err == nil {
		s.log.Info("root ended all logins to the console", "person", s.person)
	}
	return err
}

// sourceOf returns the source of a request: the address of its connection, preceded by the client
// address that a proxy names. Without a proxy, any client can claim one.
func sourceOf(r *http.Request) string {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = "unknown"
	}
	named := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	last := strings.TrimSpace(named[strings.LastIndexByte(named, ',')+1:])
	if client, err := netip.ParseAddr(last); err == nil {
		return client.WithZone("").String() + " via " + from
	}
	return from
}
