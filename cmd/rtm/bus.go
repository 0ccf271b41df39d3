package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/terminal"
)

// busFlags say which bus a command talks to, and with which token.
type busFlags struct {
	bus, token, ca    string
	insecure, verbose bool
	// stderr is where -v prints the requests.
	stderr io.Writer
}

// add gives a command, and those below it, the flags.
func (b *busFlags) add(command *cobra.Command) {
	b.addTo(command.PersistentFlags())
	_ = command.RegisterFlagCompletionFunc("bus", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		known, _ := readRC()
		return known.names(), cobra.ShellCompDirectiveNoFileComp
	})
}

func (b *busFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&b.bus, "bus", "b", "", "the bus, instead of $"+busVariable+": a domain, a URL, or @NAME for one of .rtmrc")
	flags.StringVarP(&b.token, "token", "t", "", "the token, or the root key, instead of the one in .rtmrc or $"+tokenVariable)
	flags.StringVar(&b.ca, "ca", "", "trust the certificates in this PEM `file`, besides the system's")
	flags.BoolVar(&b.insecure, "insecure", false, "trust any certificate: for trying things out only")
	flags.BoolVarP(&b.verbose, "verbose", "v", false, "print each request to the bus and its response on stderr")
}

// allowBefore lets the flags stand before the command's name too. For that, cobra has to know which
// of them take a value.
func allowBefore(root *cobra.Command) {
	var ignored busFlags
	ignored.addTo(root.Flags())
	root.Flags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
}

// run makes a cobra function from one that needs a client of the bus.
func (b *busFlags) run(do func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		b.stderr = cmd.ErrOrStderr()
		c, err := b.client()
		if err != nil {
			return err
		}
		defer c.CloseIdleConnections()
		return explain(do(cmd, c, args))
	}
}

// explain adds to an error of connecting to the bus which step failed, and the remedy.
func explain(err error) error {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if redirected, ok := errors.AsType[*client.RedirectError](err); ok && !untrusted {
		return fmt.Errorf("cannot connect to bus: %w; the bus takes requests over TLS only (FORCE_SSL). Give the https URL of the bus or of the "+
			"proxy before it, or start web with FORCE_SSL=false", redirected)
	}
	_, answered := errors.AsType[*client.Error](err)
	switch {
	case untrusted:
		return fmt.Errorf("cannot connect to bus: %w; --ca FILE trusts a certificate of yours", err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("cannot connect to bus: %w; if that is meant, give its URL with http://", err)
	case client.IsTemporary(err) && !answered:
		return fmt.Errorf("cannot connect to bus: %w", err)
	}
	return err
}

// completeTimeout bounds how long a shell waits for names.
const completeTimeout = 2 * time.Second

// complete completes an argument with names that the bus has.
func (b *busFlags) complete(cmd *cobra.Command, k kind) ([]string, cobra.ShellCompDirective) {
	c, err := b.client(client.WithRetries(0))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	found := slices.DeleteFunc(k.names(ctx, c), func(name string) bool { return !k.safe(name) })
	return found, cobra.ShellCompDirectiveNoFileComp
}

// connectTimeout bounds connecting to the bus, and then the TLS handshake; callTimeout bounds one
// request. A request is sent again at most callRetries times, because a user waits for it.
const (
	connectTimeout = 10 * time.Second
	callTimeout    = 60 * time.Second
	callRetries    = 3
)

// client returns a client of the bus that the flags and .rtmrc name. The error is a [usageError].
func (b *busFlags) client(options ...client.Option) (*client.Client, error) {
	url, token, err := b.resolve()
	if err != nil {
		return nil, usageError{err}
	}
	transport, err := b.transport()
	if err != nil {
		return nil, usageError{err}
	}
	var tripper http.RoundTripper = transport
	if b.verbose && b.stderr != nil {
		tripper = &requestPrinter{transport, b.stderr}
	}
	options = append([]client.Option{
		client.WithHTTPClient(&http.Client{Transport: tripper, Timeout: callTimeout}), client.WithUserAgent("rtm/" + app.Version()),
		client.WithRetries(callRetries),
	}, options...)
	c, err := client.New(url, token, options...)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// These environment variables have the bus and the token to use if nothing else gives one.
const (
	busVariable   = "ROUTEMASTER_BUS"
	tokenVariable = "ROUTEMASTER_TOKEN"
)

// resolve returns the URL and the token. The token of the bus in .rtmrc takes precedence over the
// environment's token, which may be for another bus.
func (b *busFlags) resolve() (url, token string, err error) {
	url, token = cmp.Or(b.bus, os.Getenv(busVariable)), cmp.Or(b.token, os.Getenv(tokenVariable))
	if url == "" {
		return "", "", errors.New("no bus given: -b or " + busVariable + " takes a domain, a URL, or @NAME for one of .rtmrc")
	}
	if name, named := strings.CutPrefix(url, "@"); named {
		known, err := readRC()
		if err != nil {
			return "", "", err
		}
		entry, ok := known.buses[name]
		if !ok {
			return "", "", fmt.Errorf("no bus named %q in .rtmrc; it has: %s", name, cmp.Or(strings.Join(known.names(), " "), "none"))
		}
		url, token = entry.Bus, cmp.Or(b.token, entry.Token, token)
		if known.local && entry.Token != token && isPlain(url) {
			return "", "", fmt.Errorf("@%s of %s is a plain http URL, and the token is not from that file: it would be sent in the clear to where "+
				"the file says. Use https, put the token into the file, or give the URL with -b", name, known.path)
		}
	}
	if token == "" {
		return "", "", errors.New("no token given: -t or " + tokenVariable + " takes one, or the root key")
	}
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return url, token, nil
}

// transport makes the connections to the bus, with the certificates that are trusted.
func (b *busFlags) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: b.insecure}
	transport.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	transport.TLSHandshakeTimeout = connectTimeout
	if b.ca == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(b.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: there is no certificate in %s; it must be PEM", b.ca)
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}

// requestPrinter prints each request to the bus, and the status of its response.
type requestPrinter struct {
	*http.Transport // so that idle connections can be closed
	out             io.Writer
}

func (p *requestPrinter) RoundTrip(req *http.Request) (*http.Response, error) {
	path, began := req.URL.Path, time.Now()
	for _, of := range []string{"/api_tokens/", "/subscribers/"} { // a token follows
		if secret, ok := strings.CutPrefix(path, of); ok {
			_, rest, more := strings.Cut(secret, "/")
			path = of + "…"
			if more {
				path += "/" + rest
			}
		}
	}
	resp, err := p.Transport.RoundTrip(req)
	result := "no response"
	if err == nil {
		result = terminal.Escape(resp.Status)
	}
	fmt.Fprintf(p.out, "%s %s://%s%s: %s, %v\n", req.Method, req.URL.Scheme, req.URL.Host, path, result, time.Since(began).Round(time.Millisecond))
	return resp, err
}
