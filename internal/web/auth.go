package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// client is who sent a request.
type client struct {
	name bus.ClientName
	// token is empty for root.
	token bus.Token
}

func (c client) root() bool { return c.name == bus.RootName }

type clientKey struct{}

// caller is the client that [Server.authenticate] found.
func caller(r *http.Request) client { return r.Context().Value(clientKey{}).(client) }

// challenge asks for credentials (RFC 7617).
const challenge = `Basic realm="routemaster", charset="UTF-8"`

// authenticate lets a request pass with the credentials of a client or of root.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok, err := s.basic(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case !ok:
			s.challenge(w)
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, found)))
		}
	})
}

// basic returns the client that a request's Basic credentials name: the user name is a token or the root
// key, the password does not matter. RFC 7617 ends the user name at the first colon, but a
// token may have colons: then it ends at the last.
func (s *Server) basic(r *http.Request) (found client, ok bool, err error) {
	user, password, ok := r.BasicAuth()
	if !ok {
		return client{}, false, nil
	}
	found, ok, err = s.directory.find(r.Context(), user)
	if colon := strings.LastIndexByte(password, ':'); !ok && err == nil && colon >= 0 {
		return s.directory.find(r.Context(), user+":"+password[:colon])
	}
	return found, ok, err
}

func (s *Server) challenge(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", challenge)
	writeProblem(w, problem{
		Status: http.StatusUnauthorized,
		Detail: "send a valid token as the user name of HTTP Basic authentication",
	})
}

func (s *Server) allowClients(next http.Handler) http.Handler {
	return allow(next, func(c client) bool { return !c.root() }, "this is for clients; use a client's token, not the root key")
}

func (s *Server) allowRoot(next http.Handler) http.Handler {
	return allow(next, client.root, "this is for the operator; use the root key")
}

func allow(next http.Handler, allowed func(client) bool, otherwise string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(caller(r)) {
			writeProblem(w, problem{Status: http.StatusForbidden, Detail: otherwise})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// directoryMaxAge is how long the tokens are held in memory: a token that was removed stops working
// everywhere within that time, which must be under a second.
const directoryMaxAge = 500 * time.Millisecond

// directory knows the clients' tokens. It holds them in memory, so that authentication costs a
// publish no round trip.
type directory struct {
	store *store.Store
	root  [sha256.Size]byte
	now   func() time.Time

	mu      sync.Mutex
	readAt  time.Time
	names   map[bus.Token]bus.ClientName
	clients map[[sha256.Size]byte]client
	err     error
}

func newDirectory(st *store.Store, rootKey string, now func() time.Time) *directory {
	return &directory{store: st, root: sha256.Sum256([]byte(rootKey)), now: now}
}

// find returns the client of a token or of the root key. Secrets are compared by their digests, so
// that the time taken tells nothing about them. The error is [bus.ErrUnavailable].
func (d *directory) find(ctx context.Context, secret string) (found client, ok bool, err error) {
	digest := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(digest[:], d.root[:]) == 1 {
		return client{name: bus.RootName}, true, nil
	}
	clients, err := d.snapshot(ctx)
	if err != nil {
		return client{}, false, err
	}
	if found, ok = clients[digest]; ok {
		return found, true, nil
	}
	token := bus.Token(secret)
	if token.Validate() != nil {
		return client{}, false, nil
	}
	// It may be new, and must work at once on every process.
	name, err := d.store.ClientName(ctx, token)
	return client{name, token}, name != "", err
}

func (d *directory) snapshot(ctx context.Context) (map[[sha256.Size]byte]client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.refresh(ctx)
	return d.clients, err
}

// clientNames returns the name of every client by token. It must not be changed.
func (d *directory) clientNames(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.refresh(ctx)
	return d.names, err
}

// refresh reads the tokens again when they are too old. A failure is remembered as long as a success, so
// that a Redis that does not answer holds up one request, not each in turn.
func (d *directory) refresh(ctx context.Context) error {
	now := d.now()
	if age := now.Sub(d.readAt); age >= 0 && age < directoryMaxAge {
		return d.err
	}
	// The answer is for all who wait, so it does not end with this request.
	d.names, d.err = d.store.Tokens(context.WithoutCancel(ctx))
	d.readAt = now
	d.clients = make(map[[sha256.Size]byte]client, len(d.names))
	for token, name := range d.names {
		d.clients[sha256.Sum256([]byte(token))] = client{name, token}
	}
	return d.err
}
