package web

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

// rotationView is the progress of a token's rotation.
type rotationView struct {
	Name bus.ClientName `json:"name"`
	// The new token.
	Token bus.Token `json:"token"`
	// Nothing is left to be done: everything has been moved to the new token and, unless it is kept,
	// the old token has been deleted.
	Done bool `json:"done"`
	// The `after` of the next request.
	After string `json:"after,omitempty"`
}

// rotationTimeout bounds the work of one request. The client repeats the request until all is done.
const rotationTimeout = time.Second

// rotateToken replaces a client's token, with a bounded amount of work in each request. The first
// request, without after, makes the new token and deletes nothing. If its response is lost, a
// repeated request returns the same token.
func (a *API) rotateToken(w http.ResponseWriter, r *http.Request) {
	view, err := a.rotate(r)
	a.RespondJSON(w, r, view, err)
}

func (a *API) rotate(r *http.Request) (view rotationView, err error) {
	ctx, old := r.Context(), bus.Token(chi.URLParam(r, "token"))
	keep, after, err := readRotation(r)
	if err != nil {
		return view, err
	}
	view.Token, view.Name, err = a.stores.RotateToken(ctx, old)
	if errors.Is(err, bus.ErrTokenUnknown) {
		if old, err = a.stores.TokenToRotate(ctx, bus.ClientName(old), after != nil); err == nil {
			view.Token, view.Name, err = a.stores.RotateToken(ctx, old)
		}
	}
	if errors.Is(err, bus.ErrTokenUnknown) {
		return view, &rest.Problem{Status: http.StatusNotFound, Detail: "there is no such token; GET /api_tokens lists them, with the names that do as well. One that was rotated is gone"}
	}
	if err != nil {
		return view, err
	}
	a.Auth.TokensChanged()
	if after == nil {
		a.Log.Info("token rotation started", "request_id", rest.RequestID(r), "client", bus.PublicName(old, view.Name))
		view.After = store.BeginRelabelling().String()
		return view, nil
	}
	next, done, err := a.stores.Of(old).Relabel(ctx, old, *after, rotationTimeout)
	if err != nil || !done {
		view.After = next.String()
		return view, err
	}
	view.Done = true
	if keep {
		return view, nil
	}
	if err = a.stores.FinishRotation(ctx, old); err == nil {
		a.Auth.TokensChanged()
		a.Log.Info("token rotated", "request_id", rest.RequestID(r), "client", bus.PublicName(old, view.Name))
	}
	return view, err
}

// readRotation reads the query of a rotation request. After is nil in the first request.
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
