package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"routemaster/client"
	"routemaster/internal/app"
)

// busFlags say which bus a command talks to, and as whom.
type busFlags struct {
	bus, token, ca    string
	insecure, verbose bool
	// stderr is where -v says what is asked.
	stderr io.Writer
}

// add gives a command, and those below it, the flags.
func (b *busFlags) add(command *cobra.Command) {
	b.addTo(command.PersistentFlags())
	_ = command.RegisterFlagCompletionFunc("bus", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return rcNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

func (b *busFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&b.bus, "bus", "b", "", "the bus: a domain, a URL, or @NAME for one of .rtmrc")
	flags.StringVarP(&b.token, "token", "t", "", "the token, or the root key, instead of that of .rtmrc")
	flags.StringVar(&b.ca, "ca", "", "trust the certificates in this PEM `file`, besides the system's")
	flags.BoolVar(&b.insecure, "insecure", false, "trust any certificate: for trying things out only")
	flags.BoolVarP(&b.verbose, "verbose", "v", false, "say on stderr what is asked of the bus, and what it answers")
}

// allowBefore lets the flags stand before the command's name too: cobra has to know which of them take a value.
func allowBefore(root *cobra.Command) {
	var ignored busFlags
	ignored.addTo(root.Flags())
	root.Flags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
}

// run makes a command's function of one that gets a client of the bus.
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

// explain says of an error that the bus did not answer.
func explain(err error) error {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
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

// completeTimeout bounds how long a shell waits for the topics' names.
const completeTimeout = 2 * time.Second

// completeTopics completes the arguments from one on, up to another (below 0: without end), with the bus's topics.
func (b *busFlags) completeTopics(from, to int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < from || to >= 0 && len(args) >= to {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := b.client(client.WithRetries(0))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		topics, _ := c.Topics(ctx)
		var names []string
		for _, topic := range topics {
			names = append(names, topic.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// connectTimeout bounds connecting to the bus, and then the TLS handshake; callTimeout bounds one request. A request is sent again callRetries times:
// somebody waits for it.
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
		tripper = &teller{transport, b.stderr}
	}
	options = append([]client.Option{
		client.WithHTTPClient(&http.Client{Transport: tripper, Timeout: callTimeout}), client.WithUserAgent("rtm/" + app.Version()),
		client.WithRetries(callRetries),
	}, options...)
	bus, err := client.New(url, token, options...)
	if err != nil {
		return nil, usageError{err}
	}
	return bus, nil
}

// resolve returns the URL and the token.
func (b *busFlags) resolve() (url, token string, err error) {
	if b.bus == "" {
		return "", "", errors.New("no bus given: -b takes a domain, a URL, or @NAME for one of .rtmrc")
	}
	url, token = b.bus, b.token
	if name, named := strings.CutPrefix(b.bus, "@"); named {
		known, err := readRC()
		if err != nil {
			return "", "", err
		}
		entry, ok := known[name]
		if !ok {
			return "", "", fmt.Errorf("no bus named %q in .rtmrc; it has: %s", name, cmp.Or(strings.Join(rcNames(), " "), "none"))
		}
		url, token = entry.Bus, cmp.Or(token, entry.Token)
	}
	if token == "" {
		return "", "", errors.New("no token given: -t takes one, or the root key")
	}
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return url, token, nil
}

// transport returns how the bus is connected to, with the certificates that are trusted.
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

// rcEntry is a bus of .rtmrc.
type rcEntry struct{ Bus, Token string }

// readRC reads .rtmrc in the working directory, else in the home directory. No file is no bus.
func readRC() (map[string]rcEntry, error) {
	directories := []string{"."}
	if home, err := os.UserHomeDir(); err == nil {
		directories = append(directories, home)
	}
	for _, directory := range directories {
		path := filepath.Join(directory, ".rtmrc")
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var known map[string]rcEntry
		if yaml.Unmarshal(text, &known) != nil { // what it says may have a token in it
			return nil, fmt.Errorf("%s is not as it must be: YAML, with `bus:` and `token:` under each name", path)
		}
		return known, nil
	}
	return nil, nil
}

// rcNames are the buses of .rtmrc, as -b takes them.
func rcNames() (names []string) {
	known, _ := readRC()
	for name := range known {
		names = append(names, "@"+name)
	}
	slices.Sort(names)
	return names
}

// teller says what is asked of the bus, and what it answers.
type teller struct {
	*http.Transport // so that idle connections can be closed
	out             io.Writer
}

func (t *teller) RoundTrip(req *http.Request) (*http.Response, error) {
	path, began := req.URL.Path, time.Now()
	if strings.HasPrefix(path, "/api_tokens/") {
		path = "/api_tokens/…" // a secret
	}
	resp, err := t.Transport.RoundTrip(req)
	answer := "no answer"
	if err == nil {
		answer = resp.Status
	}
	fmt.Fprintf(t.out, "%s %s://%s%s: %s, %v\n", req.Method, req.URL.Scheme, req.URL.Host, path, answer, time.Since(began).Round(time.Millisecond))
	return resp, err
}
