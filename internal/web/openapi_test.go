package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// openapi is the OpenAPI document, read from the file that is served.
var openapi = sync.OnceValue(func() routers.Router {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	if err != nil {
		panic(err)
	}
	// A schema without a type also allows null. The validator allows it only if all types are
	// listed.
	doc.Components.Schemas["Event"].Value.Properties["data"].Value.Type = &openapi3.Types{"null", "boolean", "number", "string", "array", "object"}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return router
})

// requireDocumented fails the test unless a response is as documented. A request that was accepted
// must be valid as documented, too; one to an undocumented path or with an undocumented method must
// be refused.
func requireDocumented(t testing.TB, r *http.Request, body string, got response) {
	t.Helper()
	if got.status == http.StatusPermanentRedirect {
		return // to https, from everywhere
	}
	route, params, err := openapi().FindRoute(r)
	if err != nil {
		require.Contains(t, []int{404, 405}, got.status, "%s %s: %v", r.Method, r.URL, err)
		return
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if got.status < 300 { // an accepted request must be valid as documented
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

func TestEveryRouteIsDocumented(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
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

// TestOpenAPIIsLinted runs a linter, which is a module of its own.
func TestOpenAPIIsLinted(t *testing.T) {
	lint := exec.CommandContext(t.Context(), "go", "run", ".", "../../openapi.json")
	lint.Dir = "testdata/lint"
	lint.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	findings, err := lint.CombinedOutput()
	require.NoError(t, err, "%s", findings)
	assert.Empty(t, string(findings))
}

// TestDeliveriesAreDocumented publishes data of every kind, and checks the delivery against its
// schema.
func TestDeliveriesAreDocumented(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	require.NoError(t, err)
	data := doc.Components.Schemas["Event"].Value.Properties["data"].Value
	assert.Empty(t, data.Type, "with types listed, generators of clients take it for an object")
	require.Contains(t, doc.Webhooks, "delivery")
	delivery := doc.Webhooks["delivery"].Post
	assert.Equal(t, "204 207 2XX 410 default", strings.Join(slices.Sorted(maps.Keys(delivery.Responses.Map())), " "))
	schema := delivery.RequestBody.Value.Content["application/json"].Schema.Value

	a.requireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","timeout":0}`)
	for _, data := range []string{"true", "1.5", `"text"`, `[1,"two"]`, `{"three":3}`, "null"} {
		a.requireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/","data":`+data+`}`)
	}
	taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
	require.NoError(t, err)
	var delivered []any
	for _, packed := range taken.Task.Payload.(*store.Delivery).Events {
		text, err := wire.AppendEventJSON(nil, packed)
		require.NoError(t, err)
		var event any
		require.NoError(t, json.Unmarshal(text, &event))
		delivered = append(delivered, event)
	}
	require.Len(t, delivered, 6)
	require.NoError(t, schema.VisitJSON(delivered))
	delete(delivered[0].(map[string]any), "t")
	require.Error(t, schema.VisitJSON(delivered))
}
