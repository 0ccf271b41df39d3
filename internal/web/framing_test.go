package web_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
)

// TestAmbiguousRequestsAreRefused sends several requests on one connection, as raw bytes, and
// checks the responses until the server closes the connection; also over TLS.
func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		a := newAPI(t, rdbtest.Embedded(t))
		address := strings.TrimPrefix(a.Run(), "http://")
		testFraming(t, func() (net.Conn, error) { return net.Dial("tcp", address) })
	})
	t.Run("TLS", func(t *testing.T) {
		certificate, roots := newCertificate(t)
		a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.Certificate = certificate })
		address := strings.TrimPrefix(a.Run(), "http://")
		testFraming(t, func() (net.Conn, error) { return tls.Dial("tcp", address, &tls.Config{RootCAs: roots}) })
	})
}

func testFraming(t *testing.T, dial func() (net.Conn, error)) {
	const head = "POST /topics/a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2UtLTE6\r\n" // alice--1
	const event = `{"type":"noop","url":"https://x.example/1"}`
	size := strconv.Itoa(len(event))
	chunked := strconv.FormatInt(int64(len(event)), 16) + ";x=y\r\n" + event + "\r\n0\r\nX-Trailer: 1\r\n\r\n"
	plain := head + "Content-Length: " + size + "\r\n\r\n" + event
	// A body that looks like the head of another request. It is not JSON, so it gets 400.
	tricky := "\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
	get := "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
	last := "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		requests string
		statuses []int
	}{
		"plain":               {plain + "\r\n" + plain + last, []int{200, 200, 200}},
		"after empty lines":   {"\r\n" + get + "\r\n\r\n" + get + "\n" + plain + "\r\n" + last, []int{200, 200, 200, 200}},
		"chunked":             {head + "transfer-encoding: chunked\r\n\r\n" + chunked + plain + last, []int{200, 200, 200}},
		"both":                {head + "Content-Length: " + size + "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + plain, []int{400}},
		"both, other order":   {head + "TRANSFER-ENCODING: chunked\r\ncontent-length:5\r\n\r\n" + chunked + plain, []int{400}},
		"folded":              {head + "Content-Length:\r\n " + size + "\r\n\r\n" + event + plain, []int{400}},
		"a body like a head":  {head + "Content-Length: " + strconv.Itoa(len(tricky)) + "\r\n\r\n" + tricky + plain + last, []int{400, 200, 200}},
		"a chunk like a head": {head + "Transfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(tricky)), 16) + "\r\n" + tricky + "\r\n0\r\n\r\n" + plain + last, []int{400, 200, 200}},
	} {
		for _, bytewise := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				conn, err := dial()
				require.NoError(t, err)
				defer conn.Close()
				requests := []byte(c.requests)
				for len(requests) > 0 {
					n := len(requests)
					if bytewise {
						n = 1
					}
					if _, err := conn.Write(requests[:n]); err != nil {
						break // it has been closed
					}
					requests = requests[n:]
				}
				reader := bufio.NewReader(conn)
				for i, status := range c.statuses {
					resp, err := http.ReadResponse(reader, nil)
					require.NoError(t, err, "response %d", i)
					_, err = io.Copy(io.Discard, resp.Body)
					require.NoError(t, err)
					assert.Equal(t, status, resp.StatusCode, "response %d", i)
					assert.Equal(t, i == len(c.statuses)-1, resp.Close, "response %d", i)
				}
				_, err = reader.ReadByte()
				assert.Error(t, err, "the connection is closed")
			})
		}
	}
}
