package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// client is one publisher: a keep-alive connection that sends one prepared request again and again, with new marks.
type client struct {
	conn    net.Conn
	request []byte
	marks   [][]byte // within request
	// sent counts the events that were answered.
	sent   int64
	answer [4 << 10]byte
}

// newClient connects to a bus, or to what answers like one. With an array of 0 it sends single events. The
// connection is closed when the context is done, or by close.
func newClient(ctx context.Context, base string, insecure bool, path, token string, id, array int) (*client, error) {
	to, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, to, insecure)
	if err != nil {
		return nil, err
	}
	body := requestBody(eventJSON, array)
	c := &client{conn: conn}
	c.request = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimSuffix(to.Path, "/")+path, to.Host, base64.StdEncoding.EncodeToString([]byte(token+":")), len(body), body)
	if c.marks, err = marksOf(c.request); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	for _, m := range c.marks {
		putDigits(publisherOf(m), int64(id))
	}
	return c, nil
}

// dialWithin bounds how long a connection may take.
const dialWithin = 10 * time.Second

func dial(ctx context.Context, to *url.URL, insecure bool) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialWithin}
	address, secure := to.Host, to.Scheme == "https"
	if to.Port() == "" {
		address = net.JoinHostPort(to.Hostname(), map[bool]string{false: "80", true: "443"}[secure])
	}
	var conn net.Conn
	var err error
	if secure {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{InsecureSkipVerify: insecure}}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, nil
}

func (c *client) close() { _ = c.conn.Close() }

// send publishes the next events. It is a [sender].
func (c *client) send(due time.Time) error {
	for i, m := range c.marks {
		putDigits(numberOf(m), c.sent+int64(i))
		putDigits(dueOf(m), due.UnixNano())
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := c.read(); err != nil {
		return err
	}
	c.sent += int64(len(c.marks))
	return nil
}

// read reads the answer, which must be 200 without a body.
func (c *client) read() error {
	filled := 0
	for {
		n, err := c.conn.Read(c.answer[filled:])
		filled += n
		answer := c.answer[:filled]
		switch {
		case bytes.HasSuffix(answer, []byte("\r\n\r\n")) && bytes.HasPrefix(answer, []byte("HTTP/1.1 200")):
			return nil
		case filled == len(c.answer), bytes.Contains(answer, []byte("\r\n\r\n")):
			return fmt.Errorf("the bus answers a publish with %q", answer)
		case err != nil:
			return fmt.Errorf("publish: %w", err)
		}
	}
}

// senders are the clients' own.
func senders(clients []*client) []sender {
	list := make([]sender, len(clients))
	for i, c := range clients {
		list[i] = c.send
	}
	return list
}

// sent counts the events that were answered.
func sent(clients []*client) (events int64) {
	for _, c := range clients {
		events += c.sent
	}
	return events
}
