package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

func TestARedirectToAPlainServerIsAnErrorAndIsNotRetried(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusPermanentRedirect)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "shop--1")
	require.NoError(t, err)
	defer c.CloseIdleConnections()
	err = c.Pulse(t.Context())
	redirected, ok := errors.AsType[*client.RedirectError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusPermanentRedirect, redirected.Status)
	assert.Equal(t, "https://"+server.Listener.Addr().String(), redirected.To)
	assert.ErrorIs(t, err, http.ErrSchemeMismatch)
	assert.False(t, client.IsTemporary(err))
	assert.Equal(t, 1, requests)
}

// TestAnErrorHasNoControlCharacters: errors are logged, and shown on terminals.
func TestAnErrorHasNoControlCharacters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"title":"a\u001b[2J","detail":"b\nc\u009b","pointer":"/d\r"}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "shop--1")
	require.NoError(t, err)
	defer c.CloseIdleConnections()
	assert.EqualError(t, c.Pulse(t.Context()), "pulse: 400 a [2J: /d : b c ")
}

func TestErrorsSayWhatToChange(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		switch n {
		case 0:
			problem(w, 400, "/3/url", "must be an https URL")
		case 1:
			http.Error(w, "Authorization: "+token, http.StatusBadGateway)
		default:
			_, _ = io.WriteString(w, "<html>")
		}
	})
	c := connect(t, bus.URL, client.WithRetries(0))
	err := c.PublishAll(t.Context(), "widgets", []client.Event{anEvent})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, client.Error{Status: 400, Title: "Bad Request", Detail: "must be an https URL", Pointer: "/3/url"}, *refused)
	assert.EqualError(t, err, "publish to widgets: 400 Bad Request: /3/url: must be an https URL")
	_, err = c.Topics(t.Context())
	assert.EqualError(t, err, "list topics: 502 Bad Gateway", "a proxy may repeat the request")
	_, err = c.Topics(t.Context())
	assert.ErrorContains(t, err, "list topics: the response is not from a bus")
}

func TestErrorsContainNoSecret(t *testing.T) {
	var errs []error
	keep := func(_ any, err error) { errs = append(errs, err) }
	for _, url := range []string{"https://" + token + "@bus.example", "https://bus.example/?" + token, token + "://x", "https://\x7f" + token, "https://:17890", token, ""} {
		keep(client.New(url, token))
	}
	keep(client.New("https://bus.example", ""))
	gone := newFakeBus(t, nil)
	gone.Close()
	elsewhere := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) {
		w.Header().Set("Location", "https://other.example/"+token)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	for _, url := range []string{gone.URL, elsewhere.URL} {
		c := connect(t, url, client.WithRetries(1))
		keep(nil, c.DeleteToken(t.Context(), token))
		keep(c.AddToken(t.Context(), "shop", token))
		keep(c.Tokens(t.Context()))
		keep(nil, c.Subscribe(t.Context(), client.Subscription{Callback: "https://shop.example/", UUID: token}))
		keep(nil, c.Publish(t.Context(), anEvent))
		keep(c.Metrics(t.Context()))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		keep(nil, c.DeleteToken(cancelled, token))
	}
	for _, err := range errs {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), token)
	}
}

func TestIsTemporary(t *testing.T) {
	assert.False(t, client.IsTemporary(nil))
	assert.False(t, client.IsTemporary(errors.New("x")))
	assert.True(t, client.IsTemporary(fmt.Errorf("x: %w", &client.Error{Status: 503})))
}
