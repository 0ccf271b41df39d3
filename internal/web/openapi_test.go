package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
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
	require.NoError(t, chi.Walk(a.Handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
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
	rdbtest.OneRedisOnly(t, "it asks nothing of Redis")
	// It runs for a moment, and takes half a minute to compile, or twice that to be optimized. What
	// it needs is built once, as for `make test`, and not again with cgo for the race detector.
	lint := exec.CommandContext(t.Context(), "go", "run", "-mod=readonly",
		"-gcflags=github.com/speakeasy-api/...=-dwarf=false -N -l", ".", "../../openapi.json")
	lint.Dir = "testdata/lint"
	lint.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	findings, err := lint.CombinedOutput()
	require.NoError(t, err, "%s", findings)
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
