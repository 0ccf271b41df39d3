package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// This file and the files of the peers have the code that a user would write around a broker or a
// job library to get the bus's function: events published by HTTP POST, and delivered by HTTPS POST
// to a callback. It is as small as it can be: publishers are not authenticated, events not checked,
// there is one topic and one subscriber, and failed deliveries are tried again.

// topic is the one that events are published to.
const topic = "bench"

// maxEvent bounds an event, in bytes.
const maxEvent = 1 << 20

// serve publishes each request's body, and answers 200 once the broker has it.
func serve(address string, publish func(ctx context.Context, event []byte) error) error {
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := publish(r.Context(), event); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
}

// pusher posts events to a callback.
type pusher struct {
	client   *http.Client
	callback string
}

// newPusher makes a pusher of so many events at a time, on a connection each. With TLS settings of
// one's own net/http speaks HTTP/1.1, which is also the fastest here.
func newPusher(callback string, inFlight int) pusher {
	return pusher{callback: callback, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // the receiver signs its own certificate
		MaxIdleConnsPerHost: inFlight,
	}}}
}

// push posts an event. It fails unless the response is a success.
func (p pusher) push(ctx context.Context, event []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.callback, bytes.NewReader(event))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth("bench", "x")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", p.callback, resp.Status)
	}
	return nil
}
