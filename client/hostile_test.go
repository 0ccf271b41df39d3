package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

// TestASwitchOfProtocolsIsAnError: after a 101 the connection stays open, and no timeout of
// [http.Client] ends it.
func TestASwitchOfProtocolsIsAnError(t *testing.T) {
	closed := make(chan error, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, err = rw.ReadByte()
		closed <- err
	}))
	defer server.Close()
	c, err := client.New(server.URL, token)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := c.Topics(t.Context())
		done <- err
	}()
	for _, ended := range []chan error{done, closed} { // the call, then its connection
		select {
		case err = <-ended:
			assert.Error(t, err)
		case <-time.After(waitTimeout):
			t.Fatal("it holds on to the connection")
		}
	}
	assert.False(t, client.IsTemporary(err))
}
