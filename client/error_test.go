package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

// TestARedirectToWhereNobodySpeaksTLS says what was answered, and is not tried again.
func TestARedirectToWhereNobodySpeaksTLS(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
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
	assert.Equal(t, 1, asked)
}

// TestAnErrorHasNoControlCharacters lets it be logged, and shown on a terminal.
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
