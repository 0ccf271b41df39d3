package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// connection is a keep-alive connection to a bus. It costs little beside the bus that is measured,
// which net/http's client does not.
type connection struct {
	net.Conn
	answer [4 << 10]byte
}

// dialTimeout bounds how long a connection may take.
const dialTimeout = 10 * time.Second

func dial(ctx context.Context, base *url.URL, insecure bool) (*connection, error) {
	var conn net.Conn
	var err error
	plain := &net.Dialer{Timeout: dialTimeout}
	address := func(port string) string {
		if base.Port() != "" {
			return base.Host
		}
		return net.JoinHostPort(base.Hostname(), port)
	}
	if base.Scheme == "https" {
		secure := &tls.Dialer{NetDialer: plain, Config: &tls.Config{InsecureSkipVerify: insecure}}
		conn, err = secure.DialContext(ctx, "tcp", address("443"))
	} else {
		conn, err = plain.DialContext(ctx, "tcp", address("80"))
	}
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &connection{Conn: conn}, nil
}

// postRequest is a request of a client of the bus at a URL, by its token.
func postRequest(base *url.URL, path, token string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimSuffix(base.Path, "/"), path, base.Host,
		base64.StdEncoding.EncodeToString([]byte(token+":")), len(body), body)
}

// post sends a request, and reads its response, which must be a 200 and fit into the buffer.
func (c *connection) post(request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	filled := 0
	for {
		n, err := c.Read(c.answer[filled:])
		filled += n
		head, body, found := bytes.Cut(c.answer[:filled], []byte("\r\n\r\n"))
		ok := bytes.HasPrefix(head, []byte("HTTP/1.1 200"))
		switch {
		case found && ok && len(body) == contentLength(head):
			return nil
		case found && !ok, filled == len(c.answer):
			return fmt.Errorf("unexpected response %q", c.answer[:filled])
		case err != nil:
			return err
		}
	}
}

// contentLength is the length of the body that a response's head states, or 0.
func contentLength(head []byte) int {
	_, after, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
	value, _, _ := bytes.Cut(after, []byte("\r\n"))
	return int(digits(value))
}
