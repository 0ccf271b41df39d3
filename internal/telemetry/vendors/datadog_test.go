package vendors

import (
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// TestAnAgentThatIsGoneIsAnError sends a single packet, whose loss UDP does not report.
func TestAnAgentThatIsGoneIsAnError(t *testing.T) {
	measures := []Measure{{Counter: bus.NewCounter("redis.bytes_used"), Value: 1, Gauge: true}}
	send := func(agent string) error {
		service := NewMetricService(MetricConfig{Service: "datadog", Agent: agent}, slog.New(slog.NewTextHandler(io.Discard, nil)))
		return service.Send(t.Context(), measures)
	}
	agent, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	address := agent.LocalAddr().String()
	for range 2 {
		require.NoError(t, send(address))
	}
	require.NoError(t, agent.Close())
	assert.ErrorContains(t, send(address), "no Datadog agent listens")

	socket := filepath.Join(t.TempDir(), "agent")
	assert.Error(t, send("unix://"+socket))
	listening, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer listening.Close()
	assert.NoError(t, send("unix://"+socket))
}
