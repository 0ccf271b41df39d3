//go:build !race

package browser_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/console/session"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// desk is a console that a browser can reach, and the bus it belongs to.
type desk struct {
	*webtest.API
	live *consoletest.Live
	// url is that of the console, with a slash at its end.
	url string
}

func newDesk(t *testing.T, figures overview.Figures) *desk {
	t.Helper()
	if browser.missing != nil {
		t.Skip(browser.missing)
	}
	st := storetest.Open(t, rdbtest.Embedded(t))
	d := &desk{live: consoletest.NewLive(figures)}
	config := console.Config{
		RootKey: webtest.RootKey, Name: "Routemaster", Environment: "test", Version: "1.2.3", Live: d.live,
		Sessions: session.New(st.Partition(), webtest.RootKey, time.Now), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	d.API = webtest.On(t, st, func(c *web.Config) {
		c.Live = d.live
		c.Console = func(api http.Handler) http.Handler { return console.New(config, api) }
	})
	server := httptest.NewServer(d.Handler)
	t.Cleanup(server.Close)
	d.url = server.URL + "/console/"
	return d
}

// logIn logs in, and returns the cookie of the session.
func (d *desk) logIn(t *testing.T, secret string) *http.Cookie {
	t.Helper()
	form := url.Values{"secret": {secret}, "person": {"Ada"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"login", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	return answer.Cookies()[0]
}
