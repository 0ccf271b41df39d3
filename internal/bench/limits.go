package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// limits are those of publishing: requests a second on a no-op handler, its CPU time for each in µs, if that is known,
// and values a second by RPUSH.
type limits struct {
	noop, rpush float64
	noopCPU     any
}

// limits measures the limits of so many publishers, with that array; of RPUSH on as many connections, pipelined by as
// many. Somebody else's bus has none.
func (s *site) limits(ctx context.Context, publishers, array int) (l limits, err error) {
	if s.own == nil {
		return l, nil
	}
	if l.noop, l.noopCPU, err = s.noop(ctx, publishers, array); err == nil {
		l.rpush, err = s.rpush(ctx, publishers, max(1, array))
	}
	return l, err
}

// noop measures what publishers reach, in requests a second, on a handler that reads the body and answers, and its CPU
// time for each.
func (s *site) noop(ctx context.Context, publishers, array int) (perSecond float64, cpu any, err error) {
	clients, err := s.clients(ctx, s.own.noop.Service, "bench_noop", publishers, array)
	if err != nil {
		return 0, nil, err
	}
	defer closeAll(clients)
	var from, to map[string]usage
	l := load{senders: senders(clients), window: s.size.limitWindow()}
	l.begin = func() error { from = s.own.usage(); return nil }
	l.end = func() error { to = s.own.usage(); return nil }
	got, err := l.run(ctx)
	if per, known := cpuPer(got.requests, from, to)[Noop]; known {
		cpu = per
	}
	return got.perSecond(), cpu, err
}

// rpush measures what Redis takes, in values a second, of values of a packed event's size, so many in a
// round trip.
func (s *site) rpush(ctx context.Context, connections, pipeline int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connections
	l := load{window: s.size.limitWindow()}
	for i := range connections {
		conn, err := dialRedis(ctx, s.own.redis)
		if err != nil {
			return 0, err
		}
		key := "limit:" + strconv.Itoa(i)
		request := bytes.Repeat(command("RPUSH", key, strings.Repeat("x", int(s.packed))), pipeline)
		l.senders = append(l.senders, func(time.Time) error { return conn.push(request, pipeline) })
		defer func() { _, _ = conn.do("DEL", key) }()
	}
	got, err := l.run(ctx)
	return got.perSecond() * float64(pipeline), err
}

// push sends commands, and reads a reply of one line for each.
func (c *redisConn) push(commands []byte, replies int) error {
	if _, err := c.conn.Write(commands); err != nil {
		return err
	}
	for range replies {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] != ':' {
			return fmt.Errorf("redis answers RPUSH with %q", line)
		}
	}
	return nil
}

// straight measures how many POSTs a second of so many events the receiver takes from a client without a bus, on so
// many connections; over HTTP/2, on so many streams of one.
func (s *site) straight(ctx context.Context, connections, events int, http2 bool) (float64, error) {
	run := s.nextRun()
	if err := s.receiver.begin(ctx, run.prefix); err != nil {
		return 0, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		Protocols:           protocols,
		MaxIdleConnsPerHost: connections,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	l := load{window: s.size.limitWindow()}
	for i := range connections {
		body := requestBody(deliveredJSON, events)
		marks, err := marksOf(body)
		if err != nil {
			return 0, err
		}
		sent := int64(0)
		url := s.own.receiver.Service + run.path(0)
		l.senders = append(l.senders, func(due time.Time) error {
			for _, m := range marks {
				putDigits(publisherOf(m), int64(i))
				putDigits(numberOf(m), sent)
				putDigits(dueOf(m), due.UnixNano())
				sent++
			}
			return post(ctx, client, url, body)
		})
	}
	got, err := l.run(ctx)
	return got.perSecond(), err
}

// post sends what a worker sends.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth("bench", "x")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bench")
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the receiver answers %s", answer.Status)
	}
	return err
}
