package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
)

type tokenView struct {
	Name  bus.ClientName `json:"name"`
	Token bus.Token      `json:"token"`
}

func (s *Server) getTokens(w http.ResponseWriter, r *http.Request) {
	names, err := s.store.Tokens(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if len(names) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	views := make([]tokenView, 0, len(names))
	for token, name := range names {
		views = append(views, tokenView{name, token})
	}
	slices.SortFunc(views, func(a, b tokenView) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Token, b.Token))
	})
	writeJSON(w, http.StatusOK, views)
}

func (s *Server) postTokens(w http.ResponseWriter, r *http.Request) {
	wanted, err := s.readToken(w, r)
	if err == nil {
		err = s.store.PutToken(r.Context(), wanted.Token, wanted.Name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.auth.TokensChanged()
	s.logChange(r, "token created", nameField(wanted.Token, wanted.Name))
	writeJSON(w, http.StatusCreated, wanted)
}

// readToken reads a new token, and makes it if it is not given.
func (s *Server) readToken(w http.ResponseWriter, r *http.Request) (wanted tokenView, err error) {
	var sent struct {
		Name  bus.ClientName `json:"name"`
		Token *bus.Token     `json:"token"`
	}
	if err := s.readJSON(w, r, s.maxValue(), &sent); err != nil {
		return wanted, err
	}
	wanted.Name = sent.Name
	if err := wanted.Name.Validate(); err != nil {
		return wanted, bus.At("/name", err)
	}
	if sent.Token != nil {
		wanted.Token = *sent.Token
		if string(wanted.Token) == string(wanted.Name) {
			return wanted, bus.Invalidf("/token", "must not be the name, which everybody may see")
		}
		return wanted, bus.At("/token", wanted.Token.Validate())
	}
	wanted.Token, err = bus.NewToken(wanted.Name)
	return wanted, bus.At("/name", err)
}

func (s *Server) deleteToken(w http.ResponseWriter, r *http.Request) {
	token := bus.Token(chi.URLParam(r, "token"))
	name, err := s.store.ClientName(r.Context(), token)
	if err == nil {
		err = s.store.DeleteToken(r.Context(), token)
		s.auth.TokensChanged()
	}
	if err == nil && name != "" {
		s.logChange(r, "token deleted", nameField(token, name))
	}
	s.respond(w, r, err)
}
