package web

import (
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
)

// changed answers 204 and logs who changed what, or answers with an error.
func (s *Server) changed(w http.ResponseWriter, r *http.Request, err error, what string, about ...slog.Attr) {
	if err == nil {
		s.logChange(r, what, about...)
	}
	s.respond(w, r, err)
}

// logChange logs who changed what. No token may be in it.
func (s *Server) logChange(r *http.Request, what string, about ...slog.Attr) {
	x := requestInfoOf(r)
	fields := append([]slog.Attr{slog.String("request_id", x.id), slog.String("client", string(x.client.PublicName()))}, about...)
	s.log.LogAttrs(r.Context(), slog.LevelInfo, what, fields...)
}

// nameField is the client that a change is about, as others may know it.
func nameField(token bus.Token, name bus.ClientName) slog.Attr {
	return slog.String("name", string(bus.PublicName(token, name)))
}
