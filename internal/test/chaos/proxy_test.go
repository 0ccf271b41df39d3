package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/test/bustest"
)

// proxy is a TCP proxy between two parties, whose traffic faults disturb.
type proxy struct{ *toxiproxy.Proxy }

// startProxy starts a proxy from one address to another.
func startProxy(t *testing.T, name, listen, upstream string) *proxy {
	t.Helper()
	p := &proxy{newProxy(name, listen, upstream)}
	require.NoError(t, p.Start())
	t.Cleanup(func() { p.Stop() }) // whichever it is by then
	return p
}

func newProxy(name, listen, upstream string) *toxiproxy.Proxy {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return toxiproxy.NewProxy(server, name, listen, upstream)
}

// toxics disturb a proxy, by the kind of fault. Downstream is the direction from the party that was
// connected to.
var toxics = map[faultKind][]string{
	slow: {
		`{"type": "latency", "stream": "upstream", "attributes": {"latency": 60, "jitter": 50}}`,
		`{"type": "latency", "stream": "downstream", "attributes": {"latency": 60, "jitter": 50}}`,
	},
	sliced:        {`{"type": "slicer", "stream": "downstream", "attributes": {"average_size": 64, "size_variation": 32, "delay": 1000}}`},
	reset:         {`{"type": "reset_peer", "stream": "downstream", "attributes": {"timeout": 0}}`},
	requestsLost:  {`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`},
	responsesLost: {`{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`},
}

// disturb begins a fault. A proxy has one at a time.
func (p *proxy) disturb(t *testing.T, kind faultKind) {
	t.Helper()
	p.Stop()
	if kind != cut {
		p.replace(t, toxics[kind]...)
	}
}

// heal ends a fault.
func (p *proxy) heal(t *testing.T) {
	t.Helper()
	p.Stop()
	p.replace(t)
}

// replace starts a proxy with these toxics in the place of one that was stopped, whose connections
// are closed. Toxiproxy can change toxics of connections too, but waits until each has passed on
// its buffered data. A connection that has just failed never does, so Toxiproxy would wait for
// ever.
func (p *proxy) replace(t *testing.T, toxics ...string) {
	t.Helper()
	p.Proxy = newProxy(p.Name, p.Listen, p.Upstream)
	for _, toxic := range toxics {
		_, err := p.Toxics.AddToxicJson(strings.NewReader(toxic))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return p.Start() == nil }, bustest.WaitTimeout, time.Millisecond)
}

// proxyGoroutines are toxiproxy's goroutines of connections that ended while bytes were on their
// way: they wait for ever for these to be read.
var proxyGoroutines = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
}
