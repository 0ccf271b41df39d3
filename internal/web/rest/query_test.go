package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served is the status of a request with a query behind a middleware.
func served(t *testing.T, query string, middleware func(http.Handler) http.Handler) int {
	w := httptest.NewRecorder()
	done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	Identify(middleware(done)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x"+query, nil))
	return w.Code
}

func TestIgnoreQuery(t *testing.T) {
	for _, query := range []string{"", "?c=1", "?A=1", "?c&c", "?a=1&_=2", "?=1"} {
		assert.Equal(t, 204, served(t, query, IgnoreQuery("a", "b")), query)
		assert.Equal(t, 204, served(t, query, IgnoreQuery()), query)
	}
	for _, query := range []string{"?a=1&a=1", "?c=1&b=1&b=2", "?a=%zz", "?c=%zz"} {
		assert.Equal(t, 400, served(t, query, IgnoreQuery("a", "b")), query)
	}
}

func TestAllowQuery(t *testing.T) {
	serve := func(query string, names ...string) int { return served(t, query, AllowQuery(names...)) }
	for _, query := range []string{"", "?", "?a=1", "?b=&a=%20"} {
		assert.Equal(t, 204, serve(query, "a", "b"), query)
	}
	for _, query := range []string{"?c=1", "?A=1", "?a=1&a=1", "?a=1&c", "?a=%zz", "?a;b"} {
		assert.Equal(t, 400, serve(query, "a", "b"), query)
	}
	assert.Equal(t, 204, serve(""))
	assert.Equal(t, 400, serve("?a=1"))
}

func TestQuery(t *testing.T) {
	read := func(query string) *Query {
		return ReadQuery(httptest.NewRequestWithContext(t.Context(), "GET", "/x?"+query, nil))
	}
	q := read("from=1000&since=1700000000000&word=b&limit=100")
	assert.EqualValues(t, 1000, q.Integer("from", 0, 1000, 0))
	assert.Equal(t, time.UnixMilli(1_700_000_000_000), q.Time("since"))
	assert.Equal(t, "b", Word(q, "word", []string{"a", "b"}))
	assert.Equal(t, 100, q.Limit())
	require.NoError(t, q.Err())

	q = read("")
	assert.EqualValues(t, 7, q.Integer("from", 0, 1000, 7))
	assert.Zero(t, q.Time("since"))
	assert.Empty(t, Word(q, "word", []string{"a", "b"}))
	assert.Equal(t, 20, q.Limit())
	require.NoError(t, q.Err())

	for query, detail := range map[string]string{
		"from=":                      "the query's from must be an integer from 0 to 1000",
		"from=1001":                  "the query's from must be an integer from 0 to 1000",
		"from=-1":                    "the query's from must be an integer from 0 to 1000",
		"from=1.0&word=c":            "the query's from must be an integer from 0 to 1000",
		"since=now":                  "the query's since must be an integer from 0 to 253402300799999",
		"since=9223372036854775807":  "the query's since must be an integer from 0 to 253402300799999",
		"since=99999999999999999999": "the query's since must be an integer from 0 to 253402300799999",
		"word=c":                     "the query's word must be one of a, b",
		"word=":                      "the query's word must be one of a, b",
		"limit=0":                    "the query's limit must be an integer from 1 to 100",
		"limit=101":                  "the query's limit must be an integer from 1 to 100",
	} {
		q := read(query)
		q.Integer("from", 0, 1000, 0)
		q.Time("since")
		Word(q, "word", []string{"a", "b"})
		q.Limit()
		assert.EqualError(t, q.Err(), detail, query)
	}
}

func TestRespondPage(t *testing.T) {
	respond := func(path, next string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		new(Service).RespondPage(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil), []int{1}, next, nil)
		assert.JSONEq(t, "[1]", w.Body.String())
		return w
	}
	assert.Empty(t, respond("/list?limit=1", "").Header().Get("Link"))
	assert.Equal(t, `</subscribers/a:b/list?after=x%2F%3D&limit=1>; rel="next"`,
		respond("/subscribers/a:b/list?limit=1&after=old", "x/=").Header().Get("Link"))
}
