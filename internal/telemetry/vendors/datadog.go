package vendors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"

	"routemaster/internal/telemetry"
)

// datadog sends measures to a Datadog agent. Each run makes a client of its own: it resolves the
// agent's address anew, and leaves no goroutine running between two runs.
type datadog struct {
	agent string
	tags  []string
}

// writeTimeout bounds the write of one packet, to an agent that hangs behind a socket file.
const writeTimeout = 50 * time.Millisecond

func (d *datadog) TakesIncrements() bool { return true }

func (d *datadog) Send(ctx context.Context, measures []Measure) (err error) {
	address, err := resolve(ctx, d.agent)
	if err != nil {
		return err
	}
	var failed failure
	client, err := statsd.New(address, statsd.WithErrorHandler(failed.note),
		statsd.WithTags(d.tags), statsd.WithoutTelemetry(), statsd.WithoutOriginDetection(),
		statsd.WithoutClientSideAggregation(), statsd.WithWriteTimeout(writeTimeout), statsd.WithConnectTimeout(writeTimeout))
	if err != nil {
		return fmt.Errorf("the Datadog agent: %w", err)
	}
	answers := probe(address)
	defer func() { // closing sends the buffer
		err = cmp.Or(errors.Join(err, client.Close()), failed.get(), answers())
	}()
	for _, m := range measures {
		name := m.Name
		if !m.Verbatim {
			name = telemetry.Namespace + "." + name
		}
		if m.Gauge {
			err = client.Gauge(name, float64(m.Value), m.tags(), 1)
		} else {
			err = client.Count(name, m.Value, m.tags(), 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// failure is the first error of several, which may come from several goroutines.
type failure struct{ first atomic.Pointer[error] }

func (f *failure) note(err error) { f.first.CompareAndSwap(nil, &err) }

func (f *failure) get() error {
	if first := f.first.Load(); first != nil {
		return *first
	}
	return nil
}

// refusalTimeout is how long a host may take to report a closed port.
const refusalTimeout = 20 * time.Millisecond

// probe sends an empty datagram, which agents ignore, and returns a function that fails if its host
// has reported the port closed. UDP gives no other sign of that.
func probe(address string) (answers func() error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return func() error { return nil } // a unix URL, or the client's error says why
	}
	_, err = conn.Write(nil)
	return func() error {
		defer conn.Close()
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(refusalTimeout))
			_, err = conn.Read(make([]byte, 1))
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("no Datadog agent listens: %w", err)
		}
		return nil
	}
}

// resolve looks up an agent's host. The client would do so itself, but without a timeout.
func resolve(ctx context.Context, agent string) (address string, err error) {
	if strings.HasPrefix(agent, "unix") {
		return agent, nil
	}
	host, port, err := net.SplitHostPort(agent)
	if err != nil {
		return "", err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addresses[0], port), nil
}
