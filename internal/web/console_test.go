package web_test

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/webtest"
)

// askingConsole passes on the API's answer to GET /whoami.
func askingConsole(api http.Handler, _ *rest.Buffers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.Clone(r.Context())
		asked.Method, asked.URL.Path = http.MethodGet, "/whoami"
		asked.SetBasicAuth(webtest.Alice, "")
		api.ServeHTTP(w, asked)
	})
}

func TestTheConsoleIsBesideTheAPIOrAlone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	redis := rdbtest.Embedded(t)
	const none, there, browser = http.StatusNotFound, http.StatusOK, http.StatusSeeOther
	for _, c := range []struct {
		name       string
		adjust     func(*web.Config)
		root, page int
	}{
		{"off", func(*web.Config) {}, there, none},
		{"beside", func(c *web.Config) { c.Console = askingConsole }, browser, there},
		{"alone", func(c *web.Config) { c.Console, c.ConsoleListener = askingConsole, listener }, there, none},
	} {
		url := webtest.New(t, redis, c.adjust).Run()
		status, text := get(t, url+"/console/a/b", "text/html")
		assert.Equal(t, c.page, status, c.name)
		if c.page == there {
			assert.JSONEq(t, `{"client":"alice","root":false}`, text)
		}
		status, _ = get(t, url+"/", "text/html,application/xhtml+xml")
		assert.Equal(t, c.root, status, c.name)
		status, _ = get(t, url+"/", "*/*")
		assert.Equal(t, there, status, "%s: curl", c.name)
		if c.name == "alone" {
			at := "http://" + listener.Addr().String()
			status, _ = get(t, at+"/console/", "")
			assert.Equal(t, there, status)
			status, _ = get(t, at+"/", "")
			assert.Equal(t, browser, status)
			status, _ = get(t, at+"/topics", "")
			assert.Equal(t, none, status, "nothing of the API is there")
			status, text = get(t, at+"/openapi.json", "")
			assert.Equal(t, there, status, "but its description, which a page leads to")
			assert.Equal(t, string(web.OpenAPI()), text)
		}
	}
}

// get gets a page without following where it leads.
func get(t *testing.T, url, accept string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	w, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	if location := w.Header.Get("Location"); location != "" {
		assert.Equal(t, "console/", location)
	}
	return w.StatusCode, string(text)
}
