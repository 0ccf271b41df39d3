// Package delivery delivers one batch to one subscriber, and says how it went.
package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// Config says how to deliver.
type Config struct {
	// ConnectTimeout bounds the making of a connection, and then its TLS handshake.
	ConnectTimeout time.Duration
	// Timeout bounds a whole delivery, from the first byte sent to the answer.
	Timeout time.Duration
	// VerifyTLS says whether a subscriber's certificate must be valid.
	VerifyTLS bool
	// Deny is the addresses that are never connected to.
	Deny bus.DenyList
	// HealRate and DamageRate are added to the subscriber's health points on success and on failure.
	HealRate, DamageRate int
	// MaxBackoff bounds the wait after a failure.
	MaxBackoff time.Duration
	// UserAgent is sent with every delivery.
	UserAgent string
	// Connections is how many idle connections to one subscriber are kept for the next delivery.
	Connections int
}

// Deliverer delivers batches. It is safe for concurrent use.
type Deliverer struct {
	config Config
	client *http.Client
	log    *slog.Logger
	now    func() time.Time
}

// New makes a deliverer.
func New(config Config, log *slog.Logger, now func() time.Time) *Deliverer {
	return &Deliverer{config: config, client: newClient(config), log: log, now: now}
}

func newClient(config Config) *http.Client {
	dialer := &net.Dialer{
		Timeout: config.ConnectTimeout,
		// Here, and not where names are resolved, so that a name that changes its address does not get through.
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(config.Deny, address) },
	}
	return &http.Client{
		Timeout: config.Timeout,
		// A redirect is a failure: the subscriber's word on where its events go is its callback.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    config.ConnectTimeout,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: !config.VerifyTLS}, // an operator's explicit choice
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // answers are thrown away
			MaxIdleConnsPerHost:    config.Connections,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxResponseHeader,
		},
	}
}

// checkAddress refuses an address that deliveries must not connect to, as it is about to be dialled.
func checkAddress(deny bus.DenyList, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if deny.Denies(to.Addr()) {
		return fmt.Errorf("the callback's address %s is denied by ROUTEMASTER_CALLBACK_DENY", to.Addr())
	}
	return nil
}

// Close ends the idle connections.
func (d *Deliverer) Close() { d.client.CloseIdleConnections() }

// Deliver posts a task's batch to its subscriber. It is the handler of [bus.JobBatch].
func (d *Deliverer) Deliver(ctx context.Context, task *store.Task) store.Outcome {
	batch := task.Delivery
	log := d.log.With("subscriber", batch.Client, "batch", batch.Batch, "attempt", batch.Attempts)
	body, events := d.body(batch, log)
	if events == 0 {
		log.Error("dropped a batch without a readable event")
		return store.Done
	}
	start := d.now()
	err := d.post(ctx, batch, body)
	log = log.With("events", events, "duration", d.now().Sub(start).Round(time.Microsecond))
	if err == nil {
		log.Debug("delivered")
		return store.Outcome{Health: d.config.HealRate, Delivered: events}
	}
	outcome, wait := d.failed(batch, err)
	log.Warn("failed to deliver", "error", err, "next_try_in", wait.Round(time.Millisecond))
	if gone(err) {
		log.Warn("the subscriber asks to be unsubscribed")
	}
	return outcome
}

// failed says when to try again, and for how long to leave the subscriber alone.
func (d *Deliverer) failed(batch *store.Delivery, err error) (outcome store.Outcome, wait time.Duration) {
	now := d.now()
	outcome.Health = d.config.DamageRate
	if gone(err) {
		outcome.Health = bus.MinHealth - bus.MaxHealth
	}
	wait = bus.Backoff(batch.Attempts, d.config.MaxBackoff, rand.Float64())
	alone := bus.Throttle(batch.Health, bus.Health(batch.Health, outcome.Health), d.config.MaxBackoff)
	if status, ok := errors.AsType[*statusError](err); ok {
		if asked := bus.RetryAfter(status.retryAfter, now, d.config.MaxBackoff); asked > 0 {
			wait, alone = asked, max(alone, asked)
		}
	}
	outcome.RetryAt = now.Add(wait)
	if alone >= time.Millisecond {
		outcome.ThrottledUntil = now.Add(alone)
	}
	return outcome, max(wait, alone)
}

// gone reports whether a subscriber says that it is no more.
func gone(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.code == http.StatusGone
}

// body makes the JSON array of a batch's events and returns it with their number. An event that cannot
// be read is left out, so that it does not hold back its neighbours.
func (d *Deliverer) body(batch *store.Delivery, log *slog.Logger) (body []byte, events int) {
	body = append(body, '[')
	separator := ""
	for i, packed := range batch.Events {
		with, err := store.AppendEventJSON(append(body, separator...), packed)
		if err != nil {
			log.Error("lost an event that cannot be read", "index", i, "error", err)
			continue
		}
		body, separator = with, ","
		events++
	}
	return append(body, ']'), events
}

// What is read of an answer at most: of its header, and of its body so that its connection can be used again.
const (
	maxResponseHeader = 64 << 10
	maxDrain          = 64 << 10
)

// statusError is an answer that does not acknowledge a batch.
type statusError struct {
	code       int
	retryAfter string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the subscriber answered %d %s", e.code, http.StatusText(e.code))
}

// post sends a batch. Any 2xx acknowledges it; the error says why it is not acknowledged.
func (d *Deliverer) post(ctx context.Context, batch *store.Delivery, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, batch.Callback, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(batch.UUID, "x")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", d.config.UserAgent)
	resp, err := d.client.Do(req)
	if err != nil {
		return plainError(err)
	}
	defer resp.Body.Close()
	// What the subscriber says beyond its status does not matter, nor whether it can be read.
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{resp.StatusCode, resp.Header.Get("Retry-After")}
	}
	return nil
}

// plainError takes the method and URL off an error of the client: the log line has them.
func plainError(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
