package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

func TestProblemsNameTheirKindAndPath(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		id                      string
	}{
		{alice, "GET", "/foo/unknown", "", 404, "not_found"},
		{"", "GET", "/v3/jobs", "", 404, "not_found"},
		{alice, "PUT", "/topics", "", 405, "method_not_allowed"},
		{"", "GET", "/topics", "", 401, "unauthorized"},
		{"nobody--9", "GET", "/topics", "", 401, "unauthorized"},
		{alice, "GET", "/api_tokens", "", 403, "forbidden"},
		{alice, "POST", "/topics/widgets", "{", 400, "invalid_request"},
		{alice, "POST", "/topics/widgets", strings.Repeat(" ", 5<<20), 413, "entity_too_large"},
		{alice, "GET", "/topics?limit=0", "", 400, "invalid_request"},
		{rootKey, "POST", "/api_tokens", `{"name":"bob","token":"alice--1"}`, 409, "conflict"},
	} {
		got := a.Problem(c.who, c.method, c.path, c.body)
		path, _, _ := strings.Cut(c.path, "?")
		assert.Equal(t, c.status, got.Status, "%s %s", c.method, c.path)
		assert.Equal(t, c.id, got.ID, "%s %s", c.method, c.path)
		assert.Equal(t, path, got.Instance)
	}
}

// TestProblemsShowNoToken requests paths that name a client by its token; [webtest.API.Problem]
// requires that no token is in the body.
func TestProblemsShowNoToken(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	for _, path := range []string{
		"/api_tokens/alice--1", "/api_tokens/alice--1/rotate", "/api_tokens/alice--1/unknown", "/v2//api_tokens/alice--1",
		"/subscribers/alice--1", "/subscribers/alice--1/unknown", "/subscribers%2Falice--1",
	} {
		got := a.Problem("", "PUT", path, "")
		assert.Contains(t, []int{404, 405}, got.Status, path)
		assert.Empty(t, got.Instance, path)
	}
	assert.Empty(t, a.Problem("", "GET", "/subscribers/alice--1", "").Instance)
	assert.Empty(t, a.Problem(alice, "GET", "/alice--1", "").Instance)
}

func TestAuthenticationWithoutAName(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/topics", nil)
	r.SetBasicAuth("", "secret")
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	webtest.RequireDocumented(t, r, "", w)
	var got webtest.Problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	assert.Equal(t, 401, got.Status)
	assert.Equal(t, "missing_authentication", got.ID)
}

// TestInsecureJobRequestsAreRefused sends requests as a proxy does that names their scheme.
// Requests to the bus's own paths are redirected: see [TestForceTLS].
func TestInsecureJobRequestsAreRefused(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	for proto, status := range map[string]int{"http": 403, "HTTP, https": 403, "https": 404, "https, http": 404, "": 308, "ws": 308} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/unknown", nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, proto)
		assert.Equal(t, status == 404, w.Header().Get("Strict-Transport-Security") != "", proto)
		if status == 403 {
			assert.Contains(t, w.Body.String(), `"id":"insecure_request","instance":"/v1/unknown"`)
		}
	}
}
