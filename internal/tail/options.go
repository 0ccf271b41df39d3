package tail

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"routemaster/client"
	"routemaster/internal/bus"
)

// Options are what a tail shows, and how the bus reaches it.
type Options struct {
	// Topics are those to show. Create creates the ones that do not exist.
	Topics []string
	Create bool
	// BusURL and Token are what the user has given.
	BusURL, Token string
	// Connect returns a client of the bus for a token.
	Connect func(token string) (*client.Client, error)
	// JSON prints events as JSON.
	JSON bool
	Exec Exec
	// Latency is how long a batch waits for more events, in ms. BatchSize is the maximum of events
	// in a delivery, 0 for the default: with Exec, 1.
	Latency, BatchSize int
	// Listen is the HOST:PORT where deliveries are received, PublicURL how the bus reaches it, if
	// not directly.
	Listen, PublicURL string
	// Plain listens without TLS. CertFile and KeyFile are PEM files; empty for a self-signed
	// certificate.
	Plain             bool
	CertFile, KeyFile string
	// Out gets the events, Errors everything else.
	Out, Errors io.Writer
}

// Exec is a command that runs for each event, instead of printing it.
type Exec struct {
	// Command is for sh -c; empty for none.
	Command string
	// Retry has the bus deliver an event again whose command fails: the answer is a receipt.
	Retry bool
	// Timeout is how long a command may run.
	Timeout time.Duration
}

// Validate checks the options, and fills in defaults. Its errors are for the user, in the words of
// the flags.
func (o *Options) Validate() error {
	o.Topics = slices.Compact(slices.Sorted(slices.Values(o.Topics)))
	for _, topic := range o.Topics {
		if err := bus.TopicName(topic).Validate(); err != nil {
			return fmt.Errorf("%q: %w", topic, err)
		}
	}
	executes := o.Exec.Command != ""
	if err := cmp.Or(o.checkHandling(executes), o.checkCertificate(), o.checkPublicURL(), o.checkReach()); err != nil {
		return err
	}
	size := bus.DefaultMaxEvents
	if executes {
		size = 1
	}
	o.BatchSize = cmp.Or(o.BatchSize, size)
	return nil
}

// checkHandling checks what is done with events.
func (o *Options) checkHandling(executes bool) error {
	switch {
	case executes && o.JSON:
		return errors.New("--json is for printing; with --exec the command gets the JSON")
	case executes && !o.Exec.Retry && o.BatchSize > 1:
		return errors.New("--batch-size is 1 with --exec, so that each command has the time of a delivery; --exec-retry allows more")
	case !executes && o.Exec.Retry:
		return errors.New("--exec-retry needs --exec")
	case o.Exec.Timeout <= 0:
		return errors.New("--exec-timeout must be more than 0")
	case o.Latency < 0 || o.Latency > int(bus.MaxTimeout.Milliseconds()):
		return fmt.Errorf("--latency must be 0 to %d ms", bus.MaxTimeout.Milliseconds())
	case o.BatchSize < 0 || o.BatchSize > bus.MaxMaxEvents:
		return fmt.Errorf("--batch-size must be 1 to %d", bus.MaxMaxEvents)
	}
	return nil
}

func (o *Options) checkCertificate() error {
	switch {
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("--cert and --key go together")
	case o.Plain && o.CertFile != "":
		return errors.New("--plain does not use a certificate: leave --cert and --key out")
	case o.Plain && o.PublicURL == "":
		return errors.New("--plain needs the --public-url of the proxy that has the certificate")
	}
	return nil
}

func (o *Options) checkPublicURL() error {
	public, err := url.Parse(o.PublicURL)
	switch {
	case o.PublicURL == "":
		return nil
	case !strings.HasPrefix(o.PublicURL, "https://"):
		return errors.New("--public-url must begin with https://")
	case err != nil: // it may have a secret in it
		return errors.New("--public-url cannot be parsed; it must be like https://me.tunnel.example/")
	case public.User != nil:
		return errors.New("--public-url must not have a user name: deliveries have a secret that tail generates")
	}
	return nil
}

// checkReach refuses addresses that the bus cannot reach: loopback if the bus is elsewhere, and
// addresses that are none.
func (o *Options) checkReach() error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("--listen must be HOST:PORT: %w", err)
	}
	if o.PublicURL != "" {
		return nil
	}
	address, _ := netip.ParseAddr(host)
	everywhere := host == "" || address.IsUnspecified()
	if base, err := url.Parse(o.BusURL); err == nil && isLoopback(base.Hostname()) {
		if everywhere {
			o.Listen = net.JoinHostPort("127.0.0.1", port)
		}
		return nil
	}
	if everywhere || isLoopback(host) {
		return errors.New("the bus is not on this host: --public-url must say how it reaches this one, " +
			"or --listen an address that it reaches")
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
