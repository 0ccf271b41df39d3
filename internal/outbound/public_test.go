package outbound

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatIsPublic posts twice to a server that seems to have a public address: the second attempt,
// over the idle connection, knows it too.
func TestWhatIsPublic(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		c, post, _ := startClient(t, http2)
		assert.False(t, post().Public)
		assert.False(t, post().Public, "reused")

		c.idle.clear()
		dial := c.transport.DialTLSContext
		c.transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil {
				noteConnection(ctx, &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 443})
			}
			return conn, err
		}
		a := post()
		require.NoError(t, a.Err)
		assert.True(t, a.Public)
		a = post()
		assert.True(t, a.Reused)
		assert.True(t, a.Public)
	}
}
