package web

import (
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
)

// respondChanged responds with 204 and logs who changed what, or responds with an error.
func (a *API) respondChanged(
	w http.ResponseWriter, r *http.Request, err error, what string, fields ...slog.Attr,
) {
	if err == nil {
		a.logChange(r, what, fields...)
	}
	a.respond(w, r, err)
}

// logChange logs who changed what. The fields must not contain a token.
func (a *API) logChange(r *http.Request, what string, fields ...slog.Attr) {
	info := requestInfoOf(r)
	who := []slog.Attr{
		slog.String("request_id", info.id),
		slog.String("client", string(info.client.PublicName())),
	}
	a.log.LogAttrs(r.Context(), slog.LevelInfo, what, append(who, fields...)...)
}

// nameField is the public name of the client that a change is about.
func nameField(token bus.Token, name bus.ClientName) slog.Attr {
	return slog.String("name", string(bus.PublicName(token, name)))
}
