package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

func TestEveryRouteIsDocumented(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	doc, err := openapi3.NewLoader().LoadFromData([]byte(a.Do("", "GET", "/openapi.json", "").Body))
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	assert.Equal(t, "3.1.0", doc.OpenAPI)

	var served, documented []string
	require.NoError(t, chi.Walk(a.Server.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
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

// TestEveryRequestHasAnExample checks each example against its schema, and sends it: the bus may
// refuse it because of its state, but not as a bad request.
func TestEveryRequestHasAnExample(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	require.NoError(t, err)
	check := func(name string, operation *openapi3.Operation, send func(contentType, body string)) {
		if operation.RequestBody == nil {
			return
		}
		require.NotEmpty(t, operation.RequestBody.Value.Content, name)
		for contentType, media := range operation.RequestBody.Value.Content {
			require.NotNil(t, media.Example, "%s has no example", name)
			require.NoError(t, media.Schema.Value.VisitJSON(media.Example), name)
			body, err := json.Marshal(media.Example)
			require.NoError(t, err)
			send(contentType, string(body))
		}
	}
	parameters := strings.NewReplacer("{topic}", "widgets", "{token}", alice, "{name}", "invoice", "{machine}", "order", "{label}", "x",
		"{id}", "job_282227eb-3c76-4ef7-af7e-25dff933077f")
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, operation := range doc.Paths.Value(path).Operations() {
			check(method+" "+path, operation, func(contentType, body string) {
				who := alice
				if strings.Contains(path, "{token}") || path == "/api_tokens" || path == "/state-machines" {
					who = rootKey
				}
				r := httptest.NewRequestWithContext(t.Context(), method, parameters.Replace(path), strings.NewReader(body))
				r.Header.Set("Content-Type", contentType)
				r.SetBasicAuth(who, "")
				w := httptest.NewRecorder()
				a.Handler.ServeHTTP(w, r)
				assert.NotEqual(t, 400, w.Code, "%s %s: %s", method, path, w.Body)
			})
		}
	}
	for name, hook := range doc.Webhooks {
		check(name, hook.Post, func(string, string) {})
	}
}

// TestGeneratorsGetTheTypesRight refuses schemas that generators of clients misread. To
// openapi-typescript, an object is empty if the schema does not mention its members, and a member
// with a default is required.
func TestGeneratorsGetTheTypesRight(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	require.NoError(t, err)
	schemas := 0
	var check func(where string, ref *openapi3.SchemaRef)
	check = func(where string, ref *openapi3.SchemaRef) {
		if ref == nil || ref.Ref != "" {
			return
		}
		schema := ref.Value
		schemas++
		if schema.Type.Includes("object") && len(schema.Properties) == 0 {
			says := schema.AdditionalProperties.Has != nil || schema.AdditionalProperties.Schema != nil
			assert.True(t, says, "%s: say with additionalProperties which members an object may have", where)
		}
		for name, property := range schema.Properties {
			assert.Nil(t, property.Value.Default, "%s/%s: say the default in the description", where, name)
			check(where+"/"+name, property)
		}
		check(where+"/items", schema.Items)
		check(where+"/additionalProperties", schema.AdditionalProperties.Schema)
		for _, some := range []openapi3.SchemaRefs{schema.OneOf, schema.AnyOf, schema.AllOf} {
			for _, one := range some {
				check(where+"/of", one)
			}
		}
	}
	for name, ref := range doc.Components.Schemas {
		check(name, ref)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody != nil {
				for _, media := range operation.RequestBody.Value.Content {
					check(method+" "+path, media.Schema)
				}
			}
			for status, response := range operation.Responses.Map() {
				for _, media := range response.Value.Content {
					check(method+" "+path+" "+status, media.Schema)
				}
			}
		}
	}
	assert.Greater(t, schemas, 500)
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

	a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","timeout":0}`)
	for _, data := range []string{"true", "1.5", `"text"`, `[1,"two"]`, `{"three":3}`, "null"} {
		a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/","data":`+data+`}`)
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
