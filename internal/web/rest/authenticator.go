package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
)

var (
	// ErrRefused says that a request has no credentials, or wrong ones.
	ErrRefused = errors.New("credentials refused")
	// ErrStaleNonce says that Digest credentials are right, but their nonce can no longer be used.
	ErrStaleNonce = errors.New("stale nonce")
)

// Client is the sender of a request.
type Client struct {
	Name bus.ClientName
	// Token is empty for root.
	Token bus.Token
	// Root is set for the holder of the root key. A client that is merely named root is not root.
	Root bool
}

// PublicName is the name of the client as others may see it, empty for the zero Client.
func (c Client) PublicName() bus.ClientName {
	switch {
	case c.Root:
		return bus.RootName
	case c.Token == "":
		return ""
	}
	return bus.PublicName(c.Token, c.Name)
}

// ListedName is the name that a [bus.Clients] has of the client, empty for root.
func (c Client) ListedName() bus.ClientName {
	if c.Root {
		return ""
	}
	return c.PublicName()
}

// TokenStore is where the tokens are kept.
type TokenStore interface {
	// Tokens returns the name of every client by its token.
	Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error)
	// FindTokens returns the names of the clients that have some tokens; unknown ones are left out.
	FindTokens(ctx context.Context, tokens []bus.Token) (map[bus.Token]bus.ClientName, error)
}

// Config says how to authenticate.
type Config struct {
	// RootKey is the operator's key. If it is empty, no caller is root.
	RootKey string
	// NonceTTL is how long a Digest nonce is valid.
	NonceTTL time.Duration
	// Guesses, if given, is the process's limiter of guesses.
	Guesses *Guesses
	// NoteUses, if given, stores when tokens were last used.
	NoteUses func(context.Context, map[bus.Token]time.Time) error
}

// Authenticator authenticates requests.
type Authenticator struct {
	rootKey  string
	tokens   *tokenCache
	digester *digester
	log      *slog.Logger
	guesses  *Guesses
}

// New makes an authenticator.
func New(config Config, tokens TokenStore, log *slog.Logger, now func() time.Time) *Authenticator {
	cache := newTokenCache(tokens, config.RootKey, now)
	cache.uses.note, cache.uses.log = config.NoteUses, log
	return &Authenticator{
		rootKey:  config.RootKey,
		tokens:   cache,
		digester: newDigester(config.RootKey, config.NonceTTL, now),
		log:      log,
		guesses:  cmp.Or(config.Guesses, NewGuesses()),
	}
}

// Run notes once a minute which tokens were used, until the context is done.
func (a *Authenticator) Run(ctx context.Context) {
	a.tokens.uses.run(ctx)
}

// Authenticate returns the client that a request's credentials name, in either scheme. The error is
// [ErrRefused], [ErrGuesses], [ErrStaleNonce], [bus.ErrUnavailable], or the context's. It checks
// the credentials first: only wrong ones are slowed down, so guessing locks out no other client.
func (a *Authenticator) Authenticate(r *http.Request) (Client, error) {
	header := r.Header.Get("Authorization")
	client, err := a.check(r, header)
	if err != ErrRefused || header == "" { // a client may ask for a challenge first
		return client, err
	}
	source := sourceOf(r.RemoteAddr)
	telemetry.Often(a.log, source).Info("refused credentials", "source", source)
	if r.Context().Value(uncounted{}) == nil {
		if slow := a.guesses.Wait(r.Context(), r.RemoteAddr); slow != nil {
			return client, slow
		}
	}
	return client, err
}

func (a *Authenticator) check(r *http.Request, header string) (Client, error) {
	scheme, credentials := schemeOf(header)
	switch {
	case strings.EqualFold(scheme, "Digest"):
		return a.digest(r, credentials)
	case strings.EqualFold(scheme, "Basic"):
		return a.basic(r, header)
	}
	return Client{}, ErrRefused
}

// schemeOf splits an Authorization header: any number of spaces follow the scheme (RFC 9110,
// section 11.4).
func schemeOf(header string) (scheme, credentials string) {
	scheme, credentials, _ = strings.Cut(header, " ")
	return scheme, strings.TrimLeft(credentials, " ")
}

// BasicCredentials returns the user name and the password of a request's Basic credentials as they
// were sent, with a colon between them. Unlike [http.Request.BasicAuth] it allows several spaces
// after the scheme.
func BasicCredentials(r *http.Request) (credentials string, ok bool) {
	scheme, encoded := schemeOf(r.Header.Get("Authorization"))
	if !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return string(decoded), err == nil && bytes.IndexByte(decoded, ':') >= 0
}

// basic checks Basic credentials. Either the user name is a client's and the password is its token,
// or the user name is a token and the password does not matter. The root key is root's token. A
// header that a client has sent before costs one look-up.
func (a *Authenticator) basic(r *http.Request, header string) (Client, error) {
	digest := digestOf(header)
	if client, ok := a.tokens.recall(digest); ok {
		return client, nil
	}
	credentials, ok := BasicCredentials(r)
	if !ok {
		return Client{}, ErrRefused
	}
	return a.tokens.find(r.Context(), digest, candidatesOf(credentials, len(a.rootKey)))
}

// candidate is a secret that a client may have sent.
type candidate struct {
	secret string
	// name is the name that the secret's client must have, empty if it does not matter.
	name string
}

// candidatesOf returns how Basic credentials may be read. RFC 7617 ends the user name at the first
// colon, but names and tokens may contain colons, so the longest user name that is right counts. A
// name with its token comes before a token, as that is more than a coincidence.
func candidatesOf(credentials string, rootKeyLen int) []candidate {
	var named, bare []candidate
	longest := max(bus.MaxTokenLen, rootKeyLen)
	for end := min(len(credentials)-1, longest); end >= 0; end-- {
		if credentials[end] != ':' {
			continue
		}
		user, password := credentials[:end], credentials[end+1:]
		if user != "" && password != "" && len(user) <= bus.MaxTokenLen && len(password) <= longest {
			named = append(named, candidate{password, user})
		}
		bare = append(bare, candidate{secret: user})
	}
	return append(named, bare...)
}

// digest checks Digest credentials.
func (a *Authenticator) digest(r *http.Request, header string) (Client, error) {
	credentials, ok := parseDigest(header)
	if !ok || credentials.uri != r.RequestURI {
		return Client{}, ErrRefused
	}
	nonce, ok := a.digester.open(credentials.nonce)
	if !ok {
		return Client{}, ErrRefused
	}
	client, err := a.tokens.findNamed(r.Context(), credentials.username, func(secret string) bool {
		return credentials.matches(r.Method, secret)
	})
	if err != nil {
		return Client{}, err
	}
	if !a.digester.use(nonce, credentials.count) {
		return Client{}, ErrStaleNonce
	}
	return client, nil
}

// Challenge adds the WWW-Authenticate headers that ask for credentials, in either scheme (RFC 7616,
// RFC 7617). Err is the error of [Authenticator.Authenticate]: after [ErrStaleNonce] a client tries
// again by itself, with the new nonce.
func (a *Authenticator) Challenge(header http.Header, err error) {
	for _, challenge := range a.digester.challenges(err == ErrStaleNonce) {
		header.Add("WWW-Authenticate", challenge)
	}
	header.Add("WWW-Authenticate", `Basic realm="`+realm+`", charset="UTF-8"`)
}

// ClientNames returns the name of every client by its token, as of at most [tokenCacheTTL] ago. The
// map must not be changed. The error is [bus.ErrUnavailable].
func (a *Authenticator) ClientNames(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	return a.tokens.clientNames(ctx)
}

// TokensChanged makes the next request read the tokens again. It is to be called after this process
// has added or removed one.
func (a *Authenticator) TokensChanged() { a.tokens.invalidate() }
