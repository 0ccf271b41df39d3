package console

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

func loadTokens(v *Visit) (any, error) {
	all, err := v.Bus.Tokens(v.Context())
	if err != nil {
		return nil, err
	}
	topics, queued := map[string]int{}, map[string]int64{}
	for _, t := range v.Figures.Topics {
		topics[t.Publisher]++
	}
	for _, s := range v.Figures.Subscribers {
		queued[s.Name] = s.Queued
	}
	named := byName(all)
	var held map[string]int64
	if len(named) < len(all) { // while a token is being changed: the figures know names only
		if held, err = queues(v); err != nil {
			return nil, err
		}
	}
	rows := make([]view.Token, len(all))
	for i, t := range all {
		name := PublicName(t)
		waits, subscribed := queued[name]
		if named[name] > 1 {
			waits, subscribed = held[t.Token]
		}
		rows[i] = view.Token{Name: name, ID: TokenID(t.Token), Topics: topics[name], Subscribed: subscribed, Queued: waits}
		if t.LastUsedAt > 0 {
			rows[i].Used = time.UnixMilli(t.LastUsedAt)
		}
	}
	return view.Tokens.Page(rows, query(v)), nil
}

// byName is how many tokens each name has.
func byName(all []client.Token) map[string]int {
	named := map[string]int{}
	for _, t := range all {
		named[PublicName(t)]++
	}
	return named
}

// queues are how many events wait for each token that a subscription belongs to.
func queues(v *Visit) (map[string]int64, error) {
	all, err := v.Bus.Subscriptions(v.Context())
	held := map[string]int64{}
	for _, s := range all {
		held[s.Subscriber] = s.Queued
	}
	return held, err
}

// newTokenPage is the data of the page that makes a token: the form, or the token, once.
type newTokenPage struct {
	view.Form
	// Nonce tells the form from others: one that is sent twice makes one token.
	Nonce   string
	Made    client.Token
	Command string
}

func newTokenForm(v *Visit) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "name", Label: "Name of the client", Kind: view.Text, Required: true, Hint: "a-z, 0-9, colon, _ and -. Everybody may see it."},
	}}
	v.Fill(&f)
	return f
}

func loadNewToken(v *Visit) (any, error) {
	return newTokenPage{
		Form: newTokenForm(v), Nonce: rand.Text(), Command: view.Command(http.MethodPost, "/api_tokens", map[string]any{"name": "shop"}),
	}, nil
}

func submitNewToken(v *Visit) (answer Answer, err error) {
	f := newTokenForm(v)
	nonce, name := v.Form("nonce"), f.Value("name")
	if len(nonce) < 20 {
		return answer, Refuse(http.StatusUnprocessableEntity, "", "This form is not complete. Load the page again.")
	}
	if err := bus.ClientName(name).Validate(); err != nil {
		return answer, Refuse(http.StatusBadRequest, "/name", err.Error())
	}
	answer, err = v.Once(nonce, func(ctx context.Context) (answer Answer, err error) {
		made, err := v.Bus.AddToken(ctx, name, "")
		return Show(newTokenPage{Form: f, Made: made}), err
	})
	if errors.Is(err, ErrSentBefore) {
		return answer, Refuse(http.StatusConflict, "",
			"This form was sent before. If it made a token, that was shown then, and is not shown again: revoke it if nobody kept it, and make another.")
	}
	return answer, err
}

// revokePath is the page that revokes a token, which its id stands for.
const revokePath = "tokens/{token}/revoke"

// revoke asks before a token is revoked.
var revoke = Question{
	Path: revokePath, Calls: "DELETE /api_tokens/{token}", For: Root, Back: "tokens",
	Ask: func(v *Visit) (c view.Confirm, err error) {
		t, named, err := tokenByID(v)
		if err != nil {
			return c, err
		}
		held, err := queues(v)
		if err != nil {
			return c, err
		}
		name := PublicName(t)
		c = view.Confirm{
			Title: "Revoke the token of " + name, Button: "Revoke the token of " + name, Name: name,
			Effects: []string{"Its requests are refused from now on, and its sessions of the console end."},
			Command: view.Command("DELETE", "/api_tokens/$OLD_TOKEN", nil),
		}
		if named > 1 {
			which := "It is that with the fingerprint " + TokenID(t.Token) + ", of " + format.Plural(int64(named), "token") + " of this name."
			c.Effects = slices.Insert(c.Effects, 0, which)
		}
		if queued, subscribed := held[t.Token]; subscribed {
			c.Effects = append(c.Effects, "Its subscription goes with it, and its queue of "+format.Plural(queued, "event")+".")
		} else {
			c.Effects = append(c.Effects, "No subscription goes with it.")
		}
		return c, nil
	},
	Do: func(v *Visit) (answer Answer, err error) {
		t, _, err := tokenByID(v)
		if err != nil {
			return answer, err
		}
		return SeeOther("Revoked a token of "+PublicName(t)+".", "tokens"), v.Bus.DeleteToken(v.Context(), t.Token)
	},
}

// tokenByID is the token that a page is about, and how many have its name.
func tokenByID(v *Visit) (t client.Token, named int, err error) {
	all, err := v.Bus.Tokens(v.Context())
	if err != nil {
		return t, 0, err
	}
	id := v.Path("token")
	i := slices.IndexFunc(all, func(t client.Token) bool { return TokenID(t.Token) == id })
	if i < 0 {
		return t, 0, Refuse(http.StatusNotFound, "", "There is no such token.")
	}
	return all[i], byName(all)[PublicName(all[i])], nil
}
