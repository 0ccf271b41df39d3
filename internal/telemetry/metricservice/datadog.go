package metricservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
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
	client, err := statsd.New(address,
		statsd.WithTags(d.tags), statsd.WithoutTelemetry(), statsd.WithoutOriginDetection(),
		statsd.WithoutClientSideAggregation(), statsd.WithWriteTimeout(writeTimeout), statsd.WithConnectTimeout(writeTimeout))
	if err != nil {
		return fmt.Errorf("the Datadog agent: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }() // it sends what is buffered
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
