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

// Posts returns senders of deliveries to a receiver, without a bus in between. They use a
// connection each over HTTP/1.1, or one for all over HTTP/2. The URL is a subscriber's;
// events is how many a delivery has. The connections are closed when the context is done.
func Posts(ctx context.Context, url string, senders, events int, http2 bool) []Sender {
	return posts(ctx, url, senders, requestBody(deliveredJSON, events), http2)
}

// JobPosts returns senders of jobs to a service of [ServeService] at a URL, without a bus in
// between, on a connection each. The connections are closed when the context is done.
func JobPosts(ctx context.Context, url string, senders int) []Sender {
	return posts(ctx, url+JobsPath+"direct/1", senders, []byte(jobJSON), false)
}

// posts returns senders of a body.
func posts(ctx context.Context, url string, senders int, prepared []byte, http2 bool) (all []Sender) {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protocols, MaxIdleConnsPerHost: senders,
	}}
	context.AfterFunc(ctx, client.CloseIdleConnections)
	for id := range senders {
		body := bytes.Clone(prepared)
		marks := allMarks(body)
		sent := int64(0)
		all = append(all, func(due time.Time) error {
			stamp(marks, id, sent, due)
			sent += int64(len(marks))
			return post(ctx, client, url, body)
		})
	}
	return all
}

// post sends a request like a worker's.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth("bench", "x")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bench")
	return do(client, req)
}

// do sends a request, and reads its response, which must be a success.
func do(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s responded %s", req.URL.Host, resp.Status)
	}
	return err
}

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
