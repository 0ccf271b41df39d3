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

// link is a proxy between two parties, whose traffic faults can spoil.
type link struct{ *toxiproxy.Proxy }

// newLink starts a proxy to a URL, and returns the URL by way of the proxy.
func newLink(t *testing.T, name, to string) (l *link, via string) {
	t.Helper()
	address, err := url.Parse(to)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l = &link{toxiproxy.NewProxy(server, name, rdbtest.FreeAddress(t), address.Host)}
	require.NoError(t, l.Start())
	t.Cleanup(l.Stop)
	address.Host = l.Listen
	return l, address.String()
}

// toxics is what spoils a link, by the kind of fault. Downstream is what comes back from who was
// connected to.
var toxics = map[faultKind][]string{
	slow: {
		`{"type": "latency", "stream": "upstream", "attributes": {"latency": 60, "jitter": 50}}`,
		`{"type": "latency", "stream": "downstream", "attributes": {"latency": 60, "jitter": 50}}`,
	},
	sliced:       {`{"type": "slicer", "stream": "downstream", "attributes": {"average_size": 64, "size_variation": 32, "delay": 1000}}`},
	reset:        {`{"type": "reset_peer", "stream": "downstream", "attributes": {"timeout": 0}}`},
	requestsLost: {`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`},
	answersLost:  {`{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`},
}

// spoil begins a fault. A link has one at a time.
func (l *link) spoil(t *testing.T, kind faultKind) {
	t.Helper()
	if kind == cut {
		l.Stop()
		return
	}
	for _, toxic := range toxics[kind] {
		_, err := l.Toxics.AddToxicJson(strings.NewReader(toxic))
		require.NoError(t, err)
	}
}

// heal ends a fault. Connections that lost bytes are closed: they are of no use any more.
func (l *link) heal(t *testing.T, kind faultKind) {
	t.Helper()
	if kind == cut {
		require.Eventually(t, func() bool { return l.Start() == nil }, bustest.WaitTimeout, time.Millisecond)
		return
	}
	l.Toxics.ResetToxics(context.Background())
}

// proxyGoroutines are toxiproxy's goroutines of connections that ended while bytes were on their
// way: they wait for ever for somebody to take these.
var proxyGoroutines = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
}
