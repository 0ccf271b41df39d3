package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestFormsThatCannotBeReadAreRefused(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for _, path := range []string{"login", "display", "tokens/new", "publish", "subscribers/shop/settings"} {
		for body, want := range map[string]int{
			"name=" + strings.Repeat("x", 1<<20): http.StatusRequestEntityTooLarge, "name=%zz": http.StatusBadRequest, "a;b": http.StatusBadRequest,
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(root.Cookies["routemaster"])
			w := httptest.NewRecorder()
			d.Handler.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, path)
			assert.Contains(t, w.Body.String(), "so nothing was done.", path)
			requireClean(t, path, w.Body.String(), strings.Count(path, "/"))
		}
	}
	assert.NotContains(t, d.ConsoleLog.String(), "level=ERROR")
}

func TestWhatIsNotThereIsAPage(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for _, path := range []string{"none", "none/such", "topics/a%2Fb/c", "a/b/c/d/e/f/g/h/"} {
		for who, b := range map[string]*consoletest.Browser{"root": root, "a stranger": d.Browser()} {
			w := b.Send(path, nil)
			assert.Equal(t, http.StatusNotFound, w.Code)
			assert.Contains(t, w.Body.String(), "There is no such page of the console.")
			assert.Equal(t, who == "root", strings.Contains(w.Body.String(), "Log out"), "%s to %s", path, who)
			requireClean(t, path, w.Body.String(), strings.Count(path, "/"))
			assert.Contains(t, w.Body.String(), `<a class="brand" href="`+strings.Repeat("../", strings.Count(path, "/")))
		}
	}
	w := root.Send(strings.Repeat("a/", 1000), nil)
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
}

func TestAMethodThatAPageDoesNotHaveIsRefused(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	for path, want := range map[string]string{"topics": "GET, HEAD", "none": "GET, HEAD", "login": "GET, HEAD, POST", "logout": "POST"} {
		w := httptest.NewRecorder()
		d.Handler.ServeHTTP(w, httptest.NewRequest("PUT", "/console/"+path, nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, path)
		allowed := strings.Split(w.Header().Get("Allow"), ", ")
		assert.Subset(t, allowed, strings.Split(want, ", "), path)
	}
}

func TestAFormOfAnotherSiteIsRefusedByAPage(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	w := root.Send("tokens/new", url.Values{"name": {"eve"}}, "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Contains(t, w.Body.String(), "This was sent by another site, so nothing was done.")
	assert.NotContains(t, w.Body.String(), "Log out", "it does not say who is logged in")
	requireClean(t, "cross-origin", w.Body.String(), 1)
}

func TestPathsWithEmptyNamesLeadOnByRelativeLinks(t *testing.T) {
	b := consoletest.New(t, rdbtest.Embedded(t)).As(webtest.RootKey)
	for from, to := range map[string]string{
		"/topics": "/bus/console/topics", "topics//widgets?range=6h": "/bus/console/topics/widgets?range=6h", "/": "/bus/console/",
		"topics//a%2Fb/": "/bus/console/topics/a/b/", "//": "/bus/console/", "a//b:c": "/bus/console/a/b:c",
	} {
		w := b.Send(from, nil)
		require.Equal(t, http.StatusPermanentRedirect, w.Code, from)
		base, err := url.Parse("https://proxy.example/bus/console/" + from)
		require.NoError(t, err)
		got, err := base.Parse(w.Header().Get("Location"))
		require.NoError(t, err)
		assert.Equal(t, to, got.RequestURI(), from)
	}
}

func TestADamagedListOfSessionsIsNamed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d := consoletest.New(t, redis)
		root, other := d.As(webtest.RootKey), d.As(webtest.RootKey)
		copied := d.Browser()
		copied.Cookies["routemaster"] = other.Cookies["routemaster"]
		key := layout.Keys{Namespace: d.First().Partition().Namespace()}.Sessions()
		require.NoError(t, redis.Raw.Set(t.Context(), key, "no sorted set", 0).Err())
		w := d.Browser().Send("login", url.Values{"secret": {webtest.Alice}})
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.Contains(t, w.Body.String(), "the key "+key+" in Redis is not of its type")
		body := root.Send("activity", nil).Body.String()
		assert.Contains(t, body, "The sessions could not be read", "who is logged in goes on")
		assert.Contains(t, body, key)
		assert.Equal(t, http.StatusSeeOther, other.Send("logout", url.Values{}).Code)
		assert.Equal(t, http.StatusUnauthorized, copied.Send("help", nil).Code)
	})
}

func TestALoginThatOnlyLooksSeesNoUUID(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	for _, c := range []struct {
		fields []string
		shown  bool
	}{{nil, true}, {[]string{"look_only", "1"}, false}} {
		b := d.As(shop, c.fields...)
		assert.Equal(t, c.shown, strings.Contains(b.Send("subscribers/shop", nil).Body.String(), "?reveal=uuid"))
		assert.Equal(t, c.shown, strings.Contains(b.Send("subscribers/shop?reveal=uuid", nil).Body.String(), consoletest.UUID))
	}
}

func TestThePageWithANewTokenIsNotCompressed(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	opened := root.Send("tokens/new", nil)
	form := consoletest.Fields(opened.Body.String())
	form.Set("name", "billing")
	assert.Equal(t, "gzip", root.Send("tokens/new", nil, "Accept-Encoding", "gzip").Header().Get("Content-Encoding"))
	w := root.Send("tokens/new", form, "Accept-Encoding", "gzip")
	assert.Empty(t, w.Header().Get("Content-Encoding"))
	assert.Contains(t, w.Body.String(), "billing--")
}

// endless is a body that says how much of it was read.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.read += len(b)
	return len(b), nil
}

func (e *endless) Close() error { return nil }

// TestStrangersFormsAreNotKept sends a form without a login to each page that takes one. Next to
// nothing of it is read, whatever login it claims.
func TestStrangersFormsAreNotKept(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	for _, p := range append(console.All(), console.Page{Path: "login", Submit: func(*console.Visit) (a console.Answer, err error) { return a, nil }}) {
		for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			for method, want := range map[string]int{http.MethodPost: http.StatusUnauthorized, http.MethodGet: http.StatusUnauthorized} {
				if p.Submit == nil && method == http.MethodPost || p.Path == "login" && method == http.MethodGet || p.For == console.Anyone && p.Path != "login" {
					continue
				}
				if p.Path == "login" {
					want = http.StatusRequestEntityTooLarge
				}
				r := httptest.NewRequestWithContext(t.Context(), method, "/console/"+d.Path(p), nil)
				body := &endless{}
				r.Body = body
				r.Header.Set("Content-Type", kind)
				r.AddCookie(&http.Cookie{Name: "routemaster", Value: strings.Repeat("x", 43)})
				w := httptest.NewRecorder()
				d.Handler.ServeHTTP(w, r)
				assert.Equal(t, want, w.Code, p.Path)
				assert.LessOrEqual(t, body.read, 8<<10, p.Path)
			}
		}
	}
}
