package rest

import (
	"log/slog"
	"net/http"

	"routemaster/internal/activity"
	"routemaster/internal/bus"
)

// RespondChanged responds with 204 and logs the change and its caller, or responds with an error.
func (s *Service) RespondChanged(
	w http.ResponseWriter, r *http.Request, err error, what string, fields ...slog.Attr,
) {
	if err == nil {
		s.LogChange(r, what, fields...)
	}
	s.Respond(w, r, err)
}

// LogChange logs a change and its caller, and keeps it for the operator if it was made by root or
// in the console. The fields must not contain a token.
func (s *Service) LogChange(r *http.Request, what string, fields ...slog.Attr) {
	info := requestInfoOf(r)
	who := []slog.Attr{
		slog.String("request_id", info.id[0]),
		slog.String("client", string(info.client.PublicName())),
	}
	s.Log.LogAttrs(r.Context(), slog.LevelInfo, what, append(who, fields...)...)
	person, inConsole := activity.Person(r.Context())
	if !inConsole && !info.client.Root {
		return
	}
	change := activity.Change{
		At: s.Now().UnixMilli(), Client: string(info.client.PublicName()), Console: inConsole, Person: person,
		RequestID: info.id[0], What: what, Fields: make(map[string]string, len(fields)),
	}
	for _, field := range fields {
		change.Fields[field.Key] = field.Value.String()
	}
	s.Activity.Note(change)
}

// NameField is the public name of the client that a change is about.
func NameField(token bus.Token, name bus.ClientName) slog.Attr {
	return slog.String("name", string(bus.PublicName(token, name)))
}

// LogDamaged logs keys in Redis that do not have the type they should have, if there are any.
func (s *Service) LogDamaged(r *http.Request, message string, keys []string) {
	if len(keys) > 0 {
		s.Log.LogAttrs(r.Context(), slog.LevelError, message, append(requestFields(r), slog.Any("keys", keys))...)
	}
}
