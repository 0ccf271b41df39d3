package pages

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/console/page"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
	"routemaster/internal/overview"
)

func loadTokens(v *page.Visit) (any, error) {
	all, err := v.Bus.Tokens(v.Context())
	if err != nil {
		return nil, err
	}
	topics, subscribers := map[string]int{}, map[string]overview.Subscriber{}
	for _, t := range v.Figures.Topics {
		topics[t.Publisher]++
	}
	for _, s := range v.Figures.Subscribers {
		subscribers[s.Name] = s
	}
	rows := make([]view.Token, len(all))
	for i, t := range all {
		name := page.PublicName(t)
		s, subscribed := subscribers[name]
		rows[i] = view.Token{Name: name, ID: page.TokenID(t.Token), Topics: topics[name], Subscribed: subscribed, Queued: s.Queued}
		if t.LastUsedAt > 0 {
			rows[i].Used = time.UnixMilli(t.LastUsedAt)
		}
	}
	return view.Tokens.Page(rows, query(v)), nil
}

// newTokenPage is what the page that makes a token shows: the form, or the token, once.
type newTokenPage struct {
	view.Form
	// Nonce tells the form from others: one that is sent twice makes one token.
	Nonce   string
	Made    client.Token
	Command string
}

func newTokenForm(v *page.Visit) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "name", Label: "Name of the client", Kind: view.Text, Required: true, Hint: "a-z, 0-9, colon, _ and -. Everybody may see it."},
	}}
	v.Fill(&f)
	return f
}

func loadNewToken(v *page.Visit) (any, error) {
	return newTokenPage{
		Form: newTokenForm(v), Nonce: rand.Text(), Command: view.Command(http.MethodPost, "/api_tokens", map[string]any{"name": "shop"}),
	}, nil
}

func submitNewToken(v *page.Visit) (answer page.Answer, err error) {
	f := newTokenForm(v)
	nonce, name := v.Form("nonce"), f.Value("name")
	if len(nonce) < 20 {
		return answer, page.Refuse(http.StatusUnprocessableEntity, "", "This form is not complete. Load the page again.")
	}
	if err := bus.ClientName(name).Validate(); err != nil {
		return answer, page.Refuse(http.StatusBadRequest, "/name", err.Error())
	}
	answer, err = v.Once(nonce, func(ctx context.Context) (answer page.Answer, err error) {
		made, err := v.Bus.AddToken(ctx, name, "")
		return page.Show(newTokenPage{Form: f, Made: made}), err
	})
	if errors.Is(err, page.ErrSentBefore) {
		return answer, page.Refuse(http.StatusConflict, "",
			"This form was sent before. If it made a token, that was shown then, and is not shown again: revoke it if nobody kept it, and make another.")
	}
	return answer, err
}

// revokePath is the page that revokes a token, which its id stands for.
const revokePath = "tokens/{token}/revoke"

// revoke asks before a token is revoked.
var revoke = page.Question{
	Path: revokePath, Calls: "DELETE /api_tokens/{token}", For: page.Root, Back: "tokens",
	Ask: func(v *page.Visit) (c view.Confirm, err error) {
		t, err := tokenByID(v)
		if err != nil {
			return c, err
		}
		name := page.PublicName(t)
		c = view.Confirm{
			Title: "Revoke the token of " + name, Button: "Revoke the token of " + name, Name: name,
			Effects: []string{"Its requests are refused from now on, and its sessions of the console end."},
			Command: view.Command("DELETE", "/api_tokens/$OLD_TOKEN", nil),
		}
		i := slices.IndexFunc(v.Figures.Subscribers, func(s overview.Subscriber) bool { return s.Name == name })
		if i >= 0 {
			c.Effects = append(c.Effects, "Its subscription goes with it, and its queue of "+format.Plural(v.Figures.Subscribers[i].Queued, "event")+".")
		}
		return c, nil
	},
	Do: func(v *page.Visit) (answer page.Answer, err error) {
		t, err := tokenByID(v)
		if err != nil {
			return answer, err
		}
		return page.SeeOther("Revoked a token of "+page.PublicName(t)+".", "tokens"), v.Bus.DeleteToken(v.Context(), t.Token)
	},
}

func tokenByID(v *page.Visit) (t client.Token, err error) {
	all, err := v.Bus.Tokens(v.Context())
	if err != nil {
		return t, err
	}
	id := v.Path("token")
	i := slices.IndexFunc(all, func(t client.Token) bool { return page.TokenID(t.Token) == id })
	if i < 0 {
		return t, page.Refuse(http.StatusNotFound, "", "There is no such token.")
	}
	return all[i], nil
}
