package test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// traceCollector receives spans by OTLP over HTTP.
type traceCollector struct {
	mu    sync.Mutex
	spans []*otlp.Span
	from  []string // the services
}

func newTraceCollector(t *testing.T) *traceCollector {
	c := &traceCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var request collector.ExportTraceServiceRequest
		assert.NoError(t, proto.Unmarshal(body, &request))
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range request.ResourceSpans {
			for _, attribute := range of.Resource.Attributes {
				if attribute.Key == "service.name" {
					c.from = append(c.from, attribute.Value.GetStringValue())
				}
			}
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}

// named returns the spans of a name, in one trace if that is given.
func (c *traceCollector) named(name string, trace []byte) (spans []*otlp.Span) {
	for _, span := range c.spans {
		if span.Name == name && (trace == nil || string(span.TraceId) == string(trace)) {
			spans = append(spans, span)
		}
	}
	return spans
}

func traced(c *app.Config) { c.Tracing = true }

// TestAPublishIsTracedToItsDelivery follows one event, and then many that share commits and a
// batch.
func TestAPublishIsTracedToItsDelivery(t *testing.T) {
	spans := newTraceCollector(t)
	b := bustest.Start(t, rdbtest.Real(t), traced)
	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	var mu sync.Mutex
	var traceparents []string // of the deliveries; read once the daemons are stopped
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		traceparents = append(traceparents, r.Header.Get("Traceparent"))
		mu.Unlock()
		sub.ServeHTTP(w, r)
	}))
	defer endpoint.Close()
	sub.URL = endpoint.URL + "/"
	sub.Subscribe(b, 0, 100, "widgets")

	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	request, err := http.NewRequestWithContext(t.Context(), "POST", b.API+"/topics/widgets", strings.NewReader(bustest.EventBody(1)))
	require.NoError(t, err)
	request.SetBasicAuth(publisher, "")
	request.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
	resp, err := b.Client.Do(request)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	sub.WaitFor(t, 1)

	const many = 40
	sub.Subscribe(b, 3_600_000, many, "widgets") // so that they share a batch
	var publishing sync.WaitGroup
	for i := range many {
		publishing.Go(func() {
			_, _, _ = bustest.Send(b.Client, b.API, publisher, "POST", "/topics/widgets", bustest.EventBody(2+i))
		})
	}
	publishing.Wait()
	sub.WaitFor(t, 1+many)
	b.RequireNothingLeft()

	published := spans.named("POST /topics/{topic}", nil)
	require.Len(t, published, 1+many)
	first := published[slices.IndexFunc(published, func(s *otlp.Span) bool { return hex(s.TraceId) == trace })]
	assert.Equal(t, parent, hex(first.ParentSpanId))
	commits, deliveries := spans.named("commit", first.TraceId), spans.named("deliver", first.TraceId)
	require.Len(t, commits, 1)
	require.Len(t, deliveries, 1)
	assert.Equal(t, first.SpanId, commits[0].ParentSpanId)
	assert.Equal(t, commits[0].SpanId, deliveries[0].ParentSpanId)
	assert.Equal(t, "00-"+trace+"-"+hex(deliveries[0].SpanId)+"-01", traceparents[0])
	assert.Equal(t, []string{"subscriber", "batch", "attempt", "events"}, keys(deliveries[0]))
	assert.ElementsMatch(t, []string{"routemaster-web", "routemaster-worker"}, slices.Compact(slices.Sorted(slices.Values(spans.from))))

	linked := 0
	for _, commit := range spans.named("commit", nil) {
		linked += 1 + len(commit.Links)
	}
	assert.Equal(t, 1+many, linked, "every publish is the parent of its commit, or linked to it")
	last := spans.named("deliver", nil)
	assert.Len(t, last[len(last)-1].Links, 7, "a batch keeps a few of its publishes")
	for _, span := range spans.spans {
		assert.NotContains(t, span.String(), publisher)
		assert.NotContains(t, span.String(), bustest.RootKey)
		assert.NotContains(t, span.String(), "uuid of")
	}
}

func hex(id []byte) string { return fmt.Sprintf("%x", id) }

func keys(span *otlp.Span) (keys []string) {
	for _, attribute := range span.Attributes {
		keys = append(keys, attribute.Key)
	}
	return keys
}

// TestTheBusSurvivesAnOutageOfItsTraceCollector has no collector, then one that hangs.
func TestTheBusSurvivesAnOutageOfItsTraceCollector(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its client has gone
		<-r.Context().Done()
	}))
	defer hanging.Close()
	for _, endpoint := range []string{"http://" + rdbtest.FreeAddress(t), hanging.URL} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		b := bustest.Start(t, rdbtest.Real(t), traced)
		publisher := b.AddClient("publisher")
		sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
		sub.Subscribe(b, 0, 100, "widgets")
		for i := range 20 {
			b.Publish(publisher, "widgets", i)
		}
		sub.WaitFor(t, 20)
		b.RequireNothingLeft()
		hanging.CloseClientConnections()
	}
}
