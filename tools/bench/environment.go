package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// environment is the surroundings of a scenario: a bus, a receiver of its deliveries, and the
// report for the results.
type environment struct {
	size   size
	report *report.Report
	table  *report.Table
	// options are the benchmark's, for scenarios that need another environment beside this one.
	options options
	// masters is how many the cluster has that the bus is on; 0 if it is on one Redis.
	masters int
	// stack has the processes. Of a remote bus, it has only the receiver.
	stack    *stack.Stack
	receiver load.Control
	remote   bool
	insecure bool
	url      string // of the bus
	// callback is the URL at which the bus reaches the receiver; empty if it cannot.
	callback string
	http     *http.Client
	// publisher is the client whose token the load publishes with.
	publisher   *client.Client
	token       string
	subscribers []*client.Client
	// packed is the size of one event as Redis holds it, in bytes.
	packed int64
	// name and runs make the names of topics.
	name string
	runs int64
}

// newEnvironment makes an environment with a bus on one Redis, on a cluster of a number of masters,
// or the one that runs already.
func newEnvironment(ctx context.Context, o options, masters int) (e *environment, err error) {
	e = &environment{size: o.size(), options: o, masters: masters, name: letters(rand.Int64N(26*26*26*26), 4)}
	if r := o.remote; o.isRemote() {
		e.remote, e.insecure, e.url, e.callback, e.token = true, r.insecure, r.url, r.publicURL, r.token
		e.stack, err = stack.NewReceiver(ctx, o.stack(0), r.listen)
	} else {
		e.stack, err = stack.New(ctx, o.stack(masters))
	}
	if err != nil {
		return nil, err
	}
	e.receiver = load.Control(e.stack.Control)
	e.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: e.insecure},
	}}
	if e.remote {
		e.publisher, err = e.as(e.token)
		e.subscribers = []*client.Client{e.publisher}
	} else {
		e.url, e.callback, e.token = "http://"+e.stack.Web, "https://"+e.stack.Receiver, "publisher--token"
		if e.publisher, err = e.newClient(ctx, "publisher", e.token); err == nil {
			e.packed, err = e.packedSize(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.stack.Close())
	}
	return e, nil
}

// close stops the processes. It removes the subscription to a remote bus.
func (e *environment) close(ctx context.Context) error {
	defer e.http.CloseIdleConnections()
	if e.remote && e.callback != "" {
		_ = e.publisher.UnsubscribeAll(context.WithoutCancel(ctx)) // it may be gone already
	}
	return e.stack.Close()
}

// as returns a client of the bus, for requests that are not measured.
func (e *environment) as(token string) (*client.Client, error) {
	return client.New(e.url, token, client.WithHTTPClient(e.http), client.WithRetries(0))
}

// newClient has the bus let in a client with a token.
func (e *environment) newClient(ctx context.Context, name, token string) (*client.Client, error) {
	root, err := e.as(stack.RootKey)
	if err != nil {
		return nil, err
	}
	if _, err := root.AddToken(ctx, name, token); err != nil {
		return nil, err
	}
	return e.as(token)
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
	return load.Target{URL: url, Insecure: e.insecure, Token: e.token, Topic: topic, Array: array}
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

// letters writes a number with letters, since names of topics have no digits.
func letters(n int64, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('a' + n%26)
		n /= 26
	}
	return string(text)
}

// subscriberToken is the token of the i-th subscriber to a bus of our own.
func subscriberToken(i int) string { return fmt.Sprintf("subscriber-%d--token", i) }

// subscribe subscribes the i-th subscriber to the topic of a run, with batches of up to limit
// events.
func (e *environment) subscribe(ctx context.Context, i int, r run, limit int, timeout time.Duration) error {
	if i == len(e.subscribers) {
		c, err := e.newClient(ctx, fmt.Sprintf("subscriber-%d", i), subscriberToken(i))
		if err != nil {
			return err
		}
		e.subscribers = append(e.subscribers, c)
	}
	return e.subscribers[i].Subscribe(ctx, client.Subscription{
		Topics: []string{r.topic}, Callback: e.callback + r.path(i), UUID: "bench", Max: limit, Timeout: &timeout,
	})
}
