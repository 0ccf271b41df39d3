package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Poster sends deliveries to a receiver without a bus in between.
type Poster struct {
	// URL is the receiver's, with the path of a subscriber.
	URL string
	// Events is how many events a delivery has.
	Events int
	client *http.Client
}

// NewPoster makes a poster for so many connections over HTTP/1.1; over HTTP/2, for so many streams
// of one connection.
func NewPoster(url string, events, connections int, http2 bool) Poster {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	return Poster{url, events, &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		Protocols:           protocols,
		MaxIdleConnsPerHost: connections,
	}}}
}

// Sender returns a sender that sends as one of the publishers.
func (p Poster) Sender(ctx context.Context, publisher int) Sender {
	body := requestBody(deliveredJSON, p.Events)
	events := allMarks(body)
	sent := int64(0)
	return func(due time.Time) error {
		for _, m := range events {
			putDigits(m.publisher(), int64(publisher))
			putDigits(m.number(), sent)
			putDigits(m.due(), due.UnixNano())
			sent++
		}
		return p.post(ctx, body)
	}
}

// post sends a request like a worker's.
func (p Poster) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth("bench", "x")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bench")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the receiver responded %s", resp.Status)
	}
	return err
}

// Close closes the connections.
func (p Poster) Close() { p.client.CloseIdleConnections() }

// Pusher appends values to a list in Redis over a connection of its own. It writes prepared bytes:
// a client library would measure itself.
type Pusher struct {
	conn     net.Conn
	in       *bufio.Reader
	key      string
	request  []byte
	pipeline int
}

// NewPusher connects to Redis, to push values of a size in bytes, so many in one round trip.
func NewPusher(ctx context.Context, address, key string, size, pipeline int) (*Pusher, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	push := redisCommand("RPUSH", key, strings.Repeat("x", size))
	return &Pusher{conn, bufio.NewReader(conn), key, bytes.Repeat(push, pipeline), pipeline}, nil
}

// Send pushes the next values. It is a [Sender].
func (p *Pusher) Send(time.Time) error { return p.do(p.request, p.pipeline) }

// Close removes the list and closes the connection.
func (p *Pusher) Close() {
	_ = p.do(redisCommand("DEL", p.key), 1)
	_ = p.conn.Close()
}

// do sends commands that are answered with an integer each.
func (p *Pusher) do(commands []byte, replies int) error {
	if _, err := p.conn.Write(commands); err != nil {
		return err
	}
	for range replies {
		line, err := p.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] != ':' {
			return fmt.Errorf("redis replied %q", line)
		}
	}
	return nil
}

// redisCommand encodes a command for Redis.
func redisCommand(words ...string) []byte {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	return text
}
