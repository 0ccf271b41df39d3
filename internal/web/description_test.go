package web_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/store/storetest"
)

// described is the API's description, read from the file that is served.
var described = sync.OnceValue(func() routers.Router {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	if err != nil {
		panic(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return router
})

// requireDescribed fails the test unless an answer is as the description says, and the request too if it was accepted. A request to a path or with a method that is
// not described must be refused.
func requireDescribed(t testing.TB, r *http.Request, body string, got answer) {
	t.Helper()
	if got.status == http.StatusPermanentRedirect {
		return // to https, from everywhere
	}
	route, params, err := described().FindRoute(r)
	if err != nil {
		require.Contains(t, []int{404, 405}, got.status, "%s %s: %v", r.Method, r.URL, err)
		return
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if got.status < 300 { // what is accepted must be allowed by the description too
		r.Body = io.NopCloser(strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		require.NoError(t, openapi3filter.ValidateRequest(t.Context(), request), "%s %s %s", r.Method, r.URL, body)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request,
		Status:                 got.status,
		Header:                 got.header,
		Body:                   io.NopCloser(bytes.NewReader([]byte(got.body))),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), input), "%s %s: %d %s", r.Method, r.URL, got.status, got.body)
}

func TestEveryRouteIsDescribed(t *testing.T) {
	a := newAPI(t, storetest.Embedded(t))
	doc, err := openapi3.NewLoader().LoadFromData([]byte(a.do("", "GET", "/openapi.json", "").body))
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	assert.Equal(t, "3.1.0", doc.OpenAPI)

	var served, documented []string
	require.NoError(t, chi.Walk(a.handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+route)
		return nil
	}))
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	assert.ElementsMatch(t, served, documented)
}
