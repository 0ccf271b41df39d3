package webtest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/web"
)

// openapi is the OpenAPI document, as it is served.
var openapi = sync.OnceValue(func() routers.Router {
	doc, err := openapi3.NewLoader().LoadFromData(web.OpenAPI())
	if err != nil {
		panic(err)
	}
	// A schema without a type also allows null. The validator allows it only if all types are
	// listed.
	for schema, member := range map[string]string{
		"Event": "data", "JobType": "schedule_data", "NewJobType": "schedule_data", "JobTypeChange": "schedule_data",
		"Job": "data", "NewJob": "data", "NewBulkJob": "data", "FetchedJob": "data",
		"ConditionPart": "value",
	} {
		anything := doc.Components.Schemas[schema].Value.Properties[member].Value
		anything.Type = &openapi3.Types{"null", "boolean", "number", "string", "array", "object"}
	}
	// The validator's own takes no t and z.
	openapi3.DefineStringFormatValidator("date-time", openapi3.NewCallbackValidator(func(text string) error {
		if _, ok := bus.ParseTime(text); !ok {
			return errors.New("is not as in RFC 3339")
		}
		return nil
	}))
	for _, picture := range []string{"text/vnd.graphviz", "image/svg+xml"} {
		openapi3filter.RegisterBodyDecoder(picture, openapi3filter.FileBodyDecoder)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return router
})

// RequireDocumented fails the test unless a response is as documented. A request that was accepted
// must be valid as documented, too; one to an undocumented path or with an undocumented method must
// be refused.
func RequireDocumented(t testing.TB, r *http.Request, body string, got *httptest.ResponseRecorder) {
	t.Helper()
	if got.Code == http.StatusPermanentRedirect {
		return // to https, from everywhere
	}
	route, params, err := openapi().FindRoute(r)
	if err != nil {
		require.Contains(t, []int{404, 405}, got.Code, "%s %s: %v", r.Method, r.URL, err)
		return
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if got.Code < 300 { // an accepted request must be valid as documented
		r.Body = io.NopCloser(strings.NewReader(body))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
		require.NoError(t, openapi3filter.ValidateRequest(t.Context(), request), "%s %s %s", r.Method, r.URL, body)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request,
		Status:                 got.Code,
		Header:                 got.Header(),
		Body:                   io.NopCloser(bytes.NewReader(got.Body.Bytes())),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), input), "%s %s: %d %s", r.Method, r.URL, got.Code, got.Body)
}
