package web_test

import (
	"net/http"
	"testing"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

func TestMain(m *testing.M) { storetest.MainWithCluster(m) }

const (
	rootKey = webtest.RootKey
	alice   = webtest.Alice
	bob     = webtest.Bob
)

// api is an API under test.
type api struct {
	*webtest.API
	// scheme is how requests are authenticated: Basic if empty, otherwise Digest with this
	// algorithm.
	scheme string
}

func newAPI(t testing.TB, redis *rdbtest.Server, adjust ...func(*web.Config)) *api {
	t.Helper()
	return withSchemes(webtest.New(t, redis, adjust...))
}

// withSchemes authenticates the requests of an api by its scheme.
func withSchemes(served *webtest.API) *api {
	a := &api{API: served}
	basic := a.Authorize
	a.Authorize = func(r *http.Request, who string) {
		if a.scheme == "" {
			basic(r, who)
			return
		}
		r.Header.Set("Authorization", a.newDigest(who).header(r.Method, r.RequestURI, 1))
	}
	return a
}
