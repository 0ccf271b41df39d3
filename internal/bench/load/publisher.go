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

// Target is where and what publishers publish.
type Target struct {
	// URL is that of a bus, or of a server that answers like one.
	URL string
	// Insecure accepts any certificate.
	Insecure     bool
	Token, Topic string
	// Array is how many events one request has; 0 is one event that is not in an array.
	Array int
}

// Publishers are connected to a target.
type Publishers []*publisher

// publisher is a keep-alive connection that sends one prepared request again and again, with new
// marks each time. It costs little beside the bus that it measures.
type publisher struct {
	conn    net.Conn
	id      int
	request []byte
	marks   []marks // within request
	// sent counts the events that were answered.
	sent   int64
	answer [4 << 10]byte
}

// Connect connects so many publishers. The connections are closed by Close, or when the context is
// done.
func Connect(ctx context.Context, target Target, publishers int) (connected Publishers, err error) {
	for id := range publishers {
		p, err := connect(ctx, target, id)
		if err != nil {
			connected.Close()
			return nil, err
		}
		connected = append(connected, p)
	}
	return connected, nil
}

func connect(ctx context.Context, target Target, id int) (*publisher, error) {
	base, err := url.Parse(target.URL)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, base, target.Insecure)
	if err != nil {
		return nil, err
	}
	body := requestBody(publishedJSON, target.Array)
	p := &publisher{conn: conn, id: id, request: fmt.Appendf(nil, "POST %s/topics/%s HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimSuffix(base.Path, "/"), target.Topic, base.Host,
		base64.StdEncoding.EncodeToString([]byte(target.Token+":")), len(body), body)}
	p.marks = allMarks(p.request)
	return p, nil
}

// dialTimeout bounds how long a connection may take.
const dialTimeout = 10 * time.Second

func dial(ctx context.Context, base *url.URL, insecure bool) (conn net.Conn, err error) {
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
	return conn, nil
}

// send publishes the next events. It is a [Sender].
func (p *publisher) send(due time.Time) error {
	stamp(p.marks, p.id, p.sent, due)
	if _, err := p.conn.Write(p.request); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := p.readAnswer(); err != nil {
		return err
	}
	p.sent += int64(len(p.marks))
	return nil
}

// readAnswer reads the response, which must be a 200 without a body.
func (p *publisher) readAnswer() error {
	filled := 0
	for {
		n, err := p.conn.Read(p.answer[filled:])
		filled += n
		answer := p.answer[:filled]
		switch {
		case bytes.HasSuffix(answer, []byte("\r\n\r\n")) && bytes.HasPrefix(answer, []byte("HTTP/1.1 200")):
			return nil
		case filled == len(p.answer), bytes.Contains(answer, []byte("\r\n\r\n")):
			return fmt.Errorf("publish: unexpected response %q", answer)
		case err != nil:
			return fmt.Errorf("publish: %w", err)
		}
	}
}

// Senders returns a sender for each publisher.
func (all Publishers) Senders() (senders []Sender) {
	for _, p := range all {
		senders = append(senders, p.send)
	}
	return senders
}

// Sent returns how many events were answered. It must not be called while they are sent.
func (all Publishers) Sent() (events int64) {
	for _, p := range all {
		events += p.sent
	}
	return events
}

// Close closes the connections.
func (all Publishers) Close() {
	for _, p := range all {
		_ = p.conn.Close()
	}
}
