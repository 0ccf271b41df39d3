package chaos

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// proxy is a TCP proxy between two parties, whose traffic faults disturb.
type proxy struct{ *toxiproxy.Proxy }

// startProxy starts a proxy to a URL, and returns the URL by way of the proxy.
func startProxy(t *testing.T, name, to string) (p *proxy, via string) {
	t.Helper()
	address, err := url.Parse(to)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p = &proxy{toxiproxy.NewProxy(server, name, rdbtest.FreeAddress(t), address.Host)}
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	address.Host = p.Listen
	return p, address.String()
}

// toxics disturb a proxy, by the kind of fault. Downstream is what comes back from the party that
// was connected to.
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
	if kind == cut {
		p.Stop()
		return
	}
	p.change(t, func() error {
		for _, toxic := range toxics[kind] {
			if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				return err
			}
		}
		return nil
	})
}

// change changes the toxics. Toxiproxy waits until each connection has passed on what it holds: one
// whose other end does not read, never has. Then all connections are closed.
func (p *proxy) change(t *testing.T, do func() error) {
	t.Helper()
	changed := make(chan error, 1)
	go func() { changed <- do() }()
	select {
	case err := <-changed:
		require.NoError(t, err)
		return
	case <-time.After(changeTimeout):
	}
	p.Stop()
	select {
	case err := <-changed:
		require.NoError(t, err)
	case <-time.After(bustest.WaitTimeout):
		t.Fatal("the proxy does not change its toxics")
	}
	p.start(t)
}

// changeTimeout is how long a change of toxics may wait for connections.
const changeTimeout = 2 * time.Second

func (p *proxy) start(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Start() == nil }, bustest.WaitTimeout, time.Millisecond)
}

// heal ends a fault. Connections that lost bytes are closed: they are of no use any more.
func (p *proxy) heal(t *testing.T, kind faultKind) {
	t.Helper()
	if kind == cut {
		p.start(t)
		return
	}
	p.change(t, func() error {
		p.Toxics.ResetToxics(context.Background())
		return nil
	})
}

// proxyGoroutines are toxiproxy's goroutines of connections that ended while bytes were on their
// way: they wait for ever for these to be read.
var proxyGoroutines = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
}
