package telemetry_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/telemetry"
)

// newTracer makes a tracer whose spans go nowhere.
func newTracer(t *testing.T, sampler string) *telemetry.Tracer {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_TRACES_SAMPLER", sampler)
	tracer, err := telemetry.NewTracer("test", "1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	return tracer
}

const trace = "00-0af7651916cd43dd8448eb211c80319c-"

// TestWhatACallerWantsGoesOn receives requests with a traceparent and a tracestate, writes down
// their spans, has another process read them, and expects its requests to have the same flags and
// state.
//
// The state may come in several lines, which a newline stands for here.
func TestWhatACallerWantsGoesOn(t *testing.T) {
	for _, sampler := range []string{"", "parentbased_traceidratio"} {
		tracer := newTracer(t, sampler)
		for name, c := range map[string]struct{ flags, state, want string }{
			"sampled":           {"01", "", ""},
			"not sampled":       {"00", "", ""},
			"with a state":      {"01", "vendor=a b%20c,other=x;y", "vendor=a b%20c,other=x;y"},
			"neither":           {"00", "vendor=1", "vendor=1"},
			"two lines":         {"01", "a=1,b=2\nc=3", "a=1,b=2,c=3"},
			"two long lines":    {"01", "v=" + strings.Repeat("x", 250) + ",w=" + strings.Repeat("y", 256) + "\nu=1", ""},
			"too long a state":  {"01", "v=" + strings.Repeat("x", 250) + ",w=" + strings.Repeat("y", 256) + ",u=" + strings.Repeat("z", 99), ""},
			"as long as it may": {"01", "v=" + strings.Repeat("x", 250) + ",w=" + strings.Repeat("y", 256), "v=" + strings.Repeat("x", 250) + ",w=" + strings.Repeat("y", 256)},
		} {
			request := http.Header{"Traceparent": {trace + "b7ad6b7169203331-" + c.flags}}
			if c.state != "" {
				request["Tracestate"] = strings.Split(c.state, "\n")
			}
			ctx, span := tracer.StartRequest(t.Context(), request)
			kept := telemetry.Traceparent(ctx)
			assert.Equal(t, c.flags == "01", telemetry.IsSampled(kept), name)
			assert.NotContains(t, kept, " ", name)
			_, commit := tracer.StartFrom(t.Context(), []string{kept}, "commit")
			kept = commit.Follow(kept)
			ctx, delivery := tracer.StartFrom(t.Context(), []string{kept}, "deliver")
			sent := http.Header{}
			telemetry.Propagate(ctx, sent)
			assert.Regexp(t, "^"+trace+"[0-9a-f]{16}-"+c.flags+"$", sent.Get("Traceparent"), name)
			assert.Equal(t, c.want, sent.Get("Tracestate"), name)
			for _, s := range []*telemetry.Span{span, commit, delivery} {
				s.End("x", "")
			}
		}
	}
}

// TestOneOfSeveralIsSampled makes a batch of several requests, one of them sampled.
func TestOneOfSeveralIsSampled(t *testing.T) {
	tracer := newTracer(t, "")
	const sampled, not = trace + "b7ad6b7169203331-01", "00-11111111111111111111111111111111-2222222222222222-00"
	for _, from := range [][]string{{not, sampled}, {sampled, not}} {
		ctx, span := tracer.StartFrom(t.Context(), from, "deliver")
		assert.Regexp(t, "^"+trace+"[0-9a-f]{16}-01$", telemetry.Traceparent(ctx))
		span.End("x", "")
	}
}

// TestARequestThatTheSamplerLeavesOut has no caller's trace: the sampler is asked anew about work
// that follows from it.
func TestARequestThatTheSamplerLeavesOut(t *testing.T) {
	ctx, span := newTracer(t, "always_off").StartRequest(t.Context(), http.Header{})
	assert.Empty(t, telemetry.Traceparent(ctx))
	span.End("x", "")
	assert.Empty(t, telemetry.Traceparent(t.Context()))
}
