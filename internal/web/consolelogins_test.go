package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// namedLogins makes codes that contain their client and person.
type namedLogins struct{}

func (namedLogins) NewCode(_ context.Context, token bus.Token, person string, lookOnly bool) (string, error) {
	return fmt.Sprintf("%s,%s,%t", token, person, lookOnly), nil
}

func TestLinksLogInAsWhoAsksForThem(t *testing.T) {
	a := webtest.New(t, rdbtest.Embedded(t), func(c *web.Config) { c.Logins = namedLogins{} })
	for _, c := range []struct {
		who, body string
		status    int
		want      string
	}{
		{alice, "", http.StatusCreated, "console/login#code=alice--1,,false"},
		{rootKey, `{"person":"Ada","look_only":true}`, http.StatusCreated, "console/login#code=,Ada,true"},
		{alice, `{"person":"` + fmt.Sprintf("%065d", 1) + `"}`, http.StatusBadRequest, "/person"},
		{alice, `{"client":"bob"}`, http.StatusBadRequest, "/client"},
	} {
		got := a.Do(c.who, "POST", "/console_logins", c.body)
		assert.Equal(t, c.status, got.Status, c.body)
		var answer struct{ URL, Pointer string }
		require.NoError(t, json.Unmarshal([]byte(got.Body), &answer))
		assert.Equal(t, c.want, answer.URL+answer.Pointer)
	}
	off := webtest.New(t, rdbtest.Embedded(t)).Problem(alice, "POST", "/console_logins", "")
	assert.Equal(t, http.StatusNotFound, off.Status)
	assert.Contains(t, off.Detail, "no console")
}

func TestLinksLeadToTheConsolesOwnAddress(t *testing.T) {
	redis := rdbtest.Embedded(t)
	for on, want := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "example.com", "[::]:0": "example.com"} {
		listener, err := net.Listen("tcp", on)
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		for scheme, secure := range map[string]bool{"http": false, "https": true} {
			a := webtest.New(t, redis, func(c *web.Config) {
				c.Logins, c.ConsoleListener, c.ForceTLS = namedLogins{}, listener, secure
			})
			a.Authorize = func(r *http.Request, who string) {
				r.SetBasicAuth(who, "")
				r.Header.Set("X-Forwarded-Proto", "https")
			}
			assert.Contains(t, a.Do(alice, "POST", "/console_logins", "").Body, `"`+scheme+"://"+want+":"+port+"/console/login#code=", on)
		}
	}
}
