package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/internal/bench/load"
	"routemaster/internal/bench/stack"
)

// environment is what a scenario works with: a bus, a receiver of its deliveries, and where the
// results go.
type environment struct {
	size   size
	report *Report
	table  *Table
	// stack has the processes. Of a remote bus, it has only the receiver.
	stack    *stack.Stack
	remote   bool
	insecure bool
	url      string // of the bus
	http     *http.Client
	receiver load.Control
	// callback is the URL at which the bus reaches the receiver; empty if it cannot.
	callback string
	// publisher and subscribers are tokens.
	publisher   string
	subscribers []string
	// packed is the size of one event as Redis holds it, in bytes.
	packed int64
	// name and runs make the names of topics.
	name string
	runs int64
}

func newEnvironment(ctx context.Context, o Options) (*environment, error) {
	if o.Remote != nil {
		return remoteEnvironment(ctx, o)
	}
	s, err := stack.New(ctx, o.stack())
	if err != nil {
		return nil, err
	}
	e := environmentOn(s, "http://"+s.Web, false)
	e.callback = "https://" + s.Receiver
	if e.publisher, err = e.addToken(ctx, "publisher"); err == nil {
		e.packed, err = e.packedSize(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	return e, nil
}

func remoteEnvironment(ctx context.Context, o Options) (*environment, error) {
	s, err := stack.NewReceiver(ctx, o.stack(), o.Remote.Listen)
	if err != nil {
		return nil, err
	}
	e := environmentOn(s, o.Remote.URL, o.Remote.Insecure)
	e.remote, e.callback = true, o.Remote.PublicURL
	e.publisher, e.subscribers = o.Remote.Token, []string{o.Remote.Token}
	return e, nil
}

func environmentOn(s *stack.Stack, url string, insecure bool) *environment {
	return &environment{
		stack: s, url: url, insecure: insecure, receiver: load.Control(s.Control),
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure},
		}},
		name: letters(rand.Int64N(26*26*26*26), 4),
	}
}

// close stops the processes. It removes the subscription to a remote bus.
func (e *environment) close(ctx context.Context) error {
	defer e.http.CloseIdleConnections()
	if e.remote && e.callback != "" {
		if bus, err := e.as(e.publisher); err == nil {
			_ = bus.UnsubscribeAll(context.WithoutCancel(ctx)) // it may be gone already
		}
	}
	return e.stack.Close()
}

// letters writes a number with letters, since names of topics have no digits.
func letters(n int64, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('a' + n%26)
		n /= 26
	}
	return string(text)
}

// as returns a client of the bus, for what is not measured.
func (e *environment) as(token string) (*client.Client, error) {
	return client.New(e.url, token, client.WithHTTPClient(e.http), client.WithRetries(0))
}

// addToken registers a client, and returns its token.
func (e *environment) addToken(ctx context.Context, name string) (token string, err error) {
	root, err := e.as(stack.RootKey)
	if err != nil {
		return "", err
	}
	added, err := root.AddToken(ctx, name, name+"--token")
	return added.Token, err
}

// packedSize publishes an event, and returns its size in Redis. All events are of that size.
func (e *environment) packedSize(ctx context.Context) (int64, error) {
	topic := e.nextRun().topic
	publishers, err := load.Connect(ctx, e.target(e.url, topic, 0), 1)
	if err != nil {
		return 0, err
	}
	defer publishers.Close()
	if err := publishers.Senders()[0](time.Now()); err != nil {
		return 0, err
	}
	return e.stack.PackedSize(ctx, topic)
}

func (e *environment) target(url, topic string, array int) load.Target {
	return load.Target{URL: url, Insecure: e.insecure, Token: e.publisher, Topic: topic, Array: array}
}

// run names the topic and the callbacks of one measurement, which no other measurement has.
type run struct{ topic, prefix string }

// path is the path of a subscriber's callback.
func (r run) path(subscriber int) string { return fmt.Sprintf("%s%d", r.prefix, subscriber) }

func (e *environment) nextRun() run {
	e.runs++
	name := e.name + letters(e.runs, 3)
	return run{topic: "bench_" + name, prefix: "/" + name + "/"}
}

// subscribe makes the i-th subscriber a subscriber of a run.
func (e *environment) subscribe(ctx context.Context, i int, r run, batch int, timeout time.Duration) error {
	if i == len(e.subscribers) {
		token, err := e.addToken(ctx, fmt.Sprintf("subscriber-%d", i))
		if err != nil {
			return err
		}
		e.subscribers = append(e.subscribers, token)
	}
	bus, err := e.as(e.subscribers[i])
	if err != nil {
		return err
	}
	return bus.Subscribe(ctx, client.Subscription{
		Topics: []string{r.topic}, Callback: e.callback + r.path(i), UUID: "bench", Max: batch, Timeout: &timeout,
	})
}
