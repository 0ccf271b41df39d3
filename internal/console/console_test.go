package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/session"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// desk is a console under test, with the bus it belongs to.
type desk struct {
	*webtest.API
	log *bytes.Buffer
}

func newDesk(t *testing.T, redis *rdbtest.Server, adjust ...func(*console.Config)) *desk {
	t.Helper()
	st := storetest.Open(t, redis)
	config := console.Config{
		RootKey: webtest.RootKey, Name: "routemaster", Environment: "test", Version: "1.2.3",
		Sessions: session.New(st.Partition(), webtest.RootKey, time.Now), Now: time.Now,
	}
	d := &desk{log: &bytes.Buffer{}}
	config.Log = slog.New(slog.NewTextHandler(d.log, nil))
	for _, f := range adjust {
		f(&config)
	}
	d.API = webtest.On(t, st, func(c *web.Config) {
		c.Console = func(api http.Handler) http.Handler { return console.New(config, api) }
	})
	return d
}

// browser keeps cookies, as browsers do.
type browser struct {
	*desk
	t       *testing.T
	cookies map[string]*http.Cookie
}

func (d *desk) browser(t *testing.T) *browser {
	return &browser{d, t, map[string]*http.Cookie{}}
}

// send sends a request for a path of the console; a form is posted.
func (b *browser) send(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, "/console/"+path, nil)
	if form != nil {
		r = httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, "/console/"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.Handler.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		b.cookies[cookie.Name] = cookie
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return w
}

// as logs in with a token or the root key.
func (d *desk) as(t *testing.T, secret string, fields ...string) *browser {
	t.Helper()
	b := d.browser(t)
	form := url.Values{"secret": {secret}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	w := b.send("login", form)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	return b
}
