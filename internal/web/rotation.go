package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// rotationView is how far the change of a client's token has come.
type rotationView struct {
	Name bus.ClientName `json:"name"`
	// Token is the new one.
	Token bus.Token `json:"token"`
	// Done says that nothing is left to be moved and that, unless it is to be kept, the old token is gone.
	Done bool `json:"done"`
	// After is what the next request sends as after; empty when all is done.
	After string `json:"after,omitempty"`
}

// rotationTime bounds what one request of a rotation takes; a client asks until all is done.
const rotationTime = time.Second

// rotateToken changes a client's token, a bounded part of it in a request. The first, without after, makes the new token and
// removes nothing: whoever does not get its answer asks again, and gets the same token.
func (s *Server) rotateToken(w http.ResponseWriter, r *http.Request) {
	view, err := s.rotate(r)
	s.respondJSON(w, r, view, err)
}

func (s *Server) rotate(r *http.Request) (view rotationView, err error) {
	ctx, old := r.Context(), bus.Token(chi.URLParam(r, "token"))
	keep, after, err := readRotation(r)
	if err != nil {
		return view, err
	}
	name, err := s.store.ClientName(ctx, old)
	if err != nil {
		return view, err
	}
	view.Token, view.Name, err = s.store.RotateToken(ctx, old, bus.NewTokenLike(name))
	if err == bus.ErrTokenUnknown {
		return view, &problem{Status: http.StatusNotFound, Detail: "there is no such token; GET /api_tokens lists them. One that was rotated is gone"}
	}
	if err != nil {
		return view, err
	}
	s.auth.TokensChanged()
	if after == nil {
		s.log.Info("began to rotate a token", "request_id", requestInfoOf(r).id, "client", bus.PublicName(old, view.Name))
		view.After = store.BeginRelabelling().String()
		return view, nil
	}
	next, done, err := s.store.Relabel(ctx, old, *after, rotationTime)
	if err != nil || !done {
		view.After = next.String()
		return view, err
	}
	view.Done = true
	if keep {
		return view, nil
	}
	if err = s.store.FinishRotation(ctx, old); err == nil {
		s.auth.TokensChanged()
		s.log.Info("rotated a token", "request_id", requestInfoOf(r).id, "client", bus.PublicName(old, view.Name))
	}
	return view, err
}

// readRotation reads a request's query. After is nil in the first request.
func readRotation(r *http.Request) (keep bool, after *store.Relabelling, err error) {
	for name, values := range r.URL.Query() {
		switch name {
		case "keep":
			if keep, err = strconv.ParseBool(values[0]); err != nil {
				return keep, nil, bus.Invalidf("", "keep must be true or false")
			}
		case "after":
			parsed, err := store.ParseRelabelling(values[0])
			if err != nil {
				return keep, nil, err
			}
			after = &parsed
		default:
			return keep, nil, bus.Invalidf("", "the query must have nothing but keep and after")
		}
	}
	return keep, after, nil
}
