package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

var (
	tokenTaken = problem{
		http.StatusConflict,
		"The token is another client's.",
		"TokenTaken",
	}
)

// tokenOperations are for the operator.
func (a *API) tokenOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/api_tokens", handle: a.getTokens, who: rootOnly, query: unchecked,
			id: "listTokens", tag: "tokens",
			summary: "List all clients' tokens",
			about:   "For the operator.",
			params:  []parameter{{name: "client", words: "Only the tokens of the clients that others know by this name."}},
			returns: []response{
				{status: http.StatusOK, words: "The tokens.", of: listOf{of: tokenView{}, min: 1}},
				{status: http.StatusNoContent, words: "There is none."},
			},
		},
		{
			method: http.MethodPost, path: "/api_tokens", handle: a.postTokens, who: rootOnly, query: unchecked,
			id: "addToken", tag: "tokens",
			summary: "Let a client in",
			about:   "For the operator. A token that is not given is made.",
			body:    &body{of: sentToken{}, example: `{"name":"shop","token":"shop--1"}`},
			returns: returns(http.StatusCreated, "The client's token. Its name does as well if only one subscriber has it, but not to subscribe, "+
				"to unsubscribe, or to delete the subscription.", tokenView{}),
			fails: []problem{tokenTaken},
		},
		{
			method: http.MethodDelete, path: "/api_tokens/{token}", handle: a.deleteToken, who: rootOnly, query: unchecked,
			id: "deleteToken", tag: "tokens",
			summary: "Take a client's token away",
			about:   "For the operator.",
			params:  []parameter{{name: "token", in: "path"}},
			returns: returns(http.StatusNoContent, "The token is gone, and its subscriber with it.", nil),
		},
		{
			method: http.MethodPost, path: "/api_tokens/{token}/rotate", handle: a.rotateToken, who: rootOnly, query: unchecked,
			id: "rotateToken", tag: "tokens",
			summary: "Change a client's token",
			about: "For the operator. The first request, without `after`, makes another token of the same name and " +
				"gives it the subscription with all that is queued; repeated, it answers the same token. Send the" +
				" `after` of each answer with the next request, until one says `done`: each does a part of the " +
				"rest, and the last removes the old token. Publishing and deliveries go on meanwhile, and either " +
				"token speaks for the client.",
			params: []parameter{
				{
					name: "token", in: "path",
					words: "The old token, or the name of a client that has one token, or one that is being rotated.",
				},
				{
					name: "keep", kind: "boolean", fallback: false,
					words: "Whether the old token is to go on working when all is done.",
				},
				{name: "after", words: "The `after` of the answer before."},
			},
			returns: returns(http.StatusOK, "How far the change has come.", rotationView{}),
			fails:   []problem{notFound},
		},
	}
}

type tokenView struct {
	Name  bus.ClientName `json:"name"`
	Token bus.Token      `json:"token"`
	// When it was last used, to the minute, in ms since the Unix epoch. Only in the list, and not
	// before the bus has noted a use.
	LastUsedAt *int64 `json:"last_used_at,omitempty" api:"format=int64"`
}

// getTokens lists the tokens with the names of their clients, all or those with one public name,
// with 204 if there are none.
func (a *API) getTokens(w http.ResponseWriter, r *http.Request) {
	names, err := a.stores.Tokens(r.Context())
	var used map[bus.Token]time.Time
	if err == nil {
		used, err = store.TokensUsed(r.Context(), a.stores.First())
	}
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	var views []tokenView
	query := r.URL.Query()
	for token, name := range names {
		if query.Has("client") && bus.PublicName(token, name) != bus.ClientName(query.Get("client")) {
			continue
		}
		view := tokenView{Name: name, Token: token}
		if at, known := used[token]; known {
			view.LastUsedAt = new(at.UnixMilli())
		}
		views = append(views, view)
	}
	if len(views) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	slices.SortFunc(views, func(a, b tokenView) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Token, b.Token))
	})
	rest.WriteJSON(w, http.StatusOK, views)
}

// postTokens adds a token for a client.
func (a *API) postTokens(w http.ResponseWriter, r *http.Request) {
	wanted, err := a.readToken(w, r)
	if err == nil {
		err = a.stores.PutToken(r.Context(), wanted.Token, wanted.Name)
	}
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	a.Auth.TokensChanged()
	a.LogChange(r, "token created", rest.NameField(wanted.Token, wanted.Name))
	rest.WriteJSON(w, http.StatusCreated, wanted)
}

// sentToken is a client that is to be let in.
type sentToken struct {
	Name bus.ClientName `json:"name" api:"required pattern=^[a-z0-9:_-]{1,64}$"`
	// Made if left out or null.
	Token *bus.Token `json:"token" api:"pattern=^[a-z0-9:_-]{1,64}$"`
}

// readToken reads a client's name and its token, and makes a token if none is given.
func (a *API) readToken(w http.ResponseWriter, r *http.Request) (wanted tokenView, err error) {
	var sent sentToken
	if err := a.ReadJSON(w, r, a.maxValue(), &sent); err != nil {
		return wanted, err
	}
	wanted.Name = sent.Name
	if err := wanted.Name.Validate(); err != nil {
		return wanted, bus.At("/name", err)
	}
	if sent.Token != nil {
		wanted.Token = *sent.Token
		if string(wanted.Token) == string(wanted.Name) {
			return wanted, a.checkStored(r.Context(), wanted)
		}
		return wanted, bus.At("/token", wanted.Token.Validate())
	}
	wanted.Token, err = bus.NewToken(wanted.Name)
	return wanted, bus.At("/name", err)
}

// checkStored refuses a token that is its client's name, unless it is stored, as the Ruby original
// took it: scripts that register their clients at each start go on working.
func (a *API) checkStored(ctx context.Context, wanted tokenView) error {
	if wanted.Token.Validate() == nil {
		if name, err := a.stores.ClientName(ctx, wanted.Token); err != nil || name == wanted.Name {
			return err
		}
	}
	return bus.Invalidf("/token", "must not be the name, which everybody may see")
}

// deleteToken deletes a token, with its client's subscription.
func (a *API) deleteToken(w http.ResponseWriter, r *http.Request) {
	token := bus.Token(chi.URLParam(r, "token"))
	name, err := a.stores.ClientName(r.Context(), token)
	if err == nil {
		err = a.stores.DeleteToken(r.Context(), token)
		a.Auth.TokensChanged()
	}
	if err == nil {
		_ = store.NoteTokensUsed(r.Context(), a.stores.First(), nil) // else the next note forgets its use
	}
	if err == nil && name != "" {
		a.LogChange(r, "token deleted", rest.NameField(token, name))
	}
	a.Respond(w, r, err)
}
