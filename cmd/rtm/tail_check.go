package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/selfsigned"
)

// check checks the command line, and fills in what it leaves open.
func (t *tail) check(topics []string) error {
	t.topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	for _, topic := range t.topics {
		if err := bus.TopicName(topic).Validate(); err != nil {
			return fmt.Errorf("%q: %w", topic, err)
		}
	}
	wrong := func(is bool, text string) error {
		if is {
			return errors.New(text)
		}
		return nil
	}
	executes := t.exec.command != ""
	public, unreadable := url.Parse(t.publicURL)
	if err := cmp.Or(
		wrong(executes && t.json, "--json is for printing; with --exec the command gets the JSON"),
		wrong(executes && t.batchSize > 1, "--batch-size is 1 with --exec, so that each command has the time of a delivery"),
		wrong(!executes && t.exec.retry, "--exec-retry is of no use without --exec"),
		wrong(t.exec.timeout <= 0, "--exec-timeout must be more than 0"),
		wrong(t.latency < 0 || t.latency > int(bus.MaxTimeout.Milliseconds()), "--latency must be 0 to 3600000 ms"),
		wrong(t.batchSize < 0 || t.batchSize > bus.MaxMaxEvents, "--batch-size must be 1 to 10000"),
		wrong((t.certFile == "") != (t.keyFile == ""), "--cert and --key go together"),
		wrong(t.plain && t.certFile != "", "--plain is without a certificate of its own; leave --cert and --key out"),
		wrong(t.plain && t.publicURL == "", "--plain needs the --public-url of the proxy that has the certificate"),
		wrong(t.publicURL != "" && !strings.HasPrefix(t.publicURL, "https://"), "--public-url must begin with https://"),
		wrong(unreadable != nil, "--public-url cannot be read; it must be like https://me.tunnel.example/"),
		wrong(unreadable == nil && public.User != nil, "--public-url must not have a user name; deliveries bring a secret that tail makes"),
	); err != nil {
		return err
	}
	t.batchSize = cmp.Or(t.batchSize, bus.DefaultMaxEvents)
	if executes {
		t.batchSize = 1
	}
	return t.checkReach()
}

// checkReach refuses what the bus cannot reach: this machine's loopback, if the bus is elsewhere, and no address at all.
func (t *tail) checkReach() error {
	host, port, err := net.SplitHostPort(t.listen)
	if err != nil {
		return fmt.Errorf("--listen must be HOST:PORT: %w", err)
	}
	if t.publicURL != "" {
		return nil
	}
	busURL, _, err := t.bus.resolve()
	if err != nil {
		return err
	}
	address, _ := netip.ParseAddr(host)
	everywhere := host == "" || address.IsUnspecified()
	if base, err := url.Parse(busURL); err == nil && isLoopback(base.Hostname()) {
		if everywhere {
			t.listen = net.JoinHostPort("127.0.0.1", port)
		}
		return nil
	}
	if everywhere || isLoopback(host) {
		return errors.New("the bus is not on this machine: say with --public-url how it reaches this one, or --listen on an address that it reaches")
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// newReceiver listens as the command line says.
func (t *tail) newReceiver() (*receiver, error) {
	uuid := tailMark + newSecret()
	if t.plain {
		return newReceiver(t.listen, uuid, nil)
	}
	var certificate tls.Certificate
	var err error
	if t.certFile != "" {
		certificate, err = tls.LoadX509KeyPair(t.certFile, t.keyFile)
	} else {
		certificate, err = selfsigned.Certificate(t.listen)
	}
	if err != nil {
		return nil, err
	}
	return newReceiver(t.listen, uuid, &tls.Config{Certificates: []tls.Certificate{certificate}})
}
