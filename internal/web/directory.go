package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// How long the tokens are held in memory: a token that was removed stops working everywhere within
// directoryMaxAge, which must be under a second. What is not found is looked for again after missMaxAge.
const (
	directoryMaxAge = 500 * time.Millisecond
	missMaxAge      = 50 * time.Millisecond
)

// directory knows the clients' tokens. It holds them in memory, so that authentication costs a
// publish no round trip.
type directory struct {
	store   *store.Store
	rootKey string
	root    [sha256.Size]byte
	now     func() time.Time

	mu      sync.Mutex
	current snapshot
}

// snapshot is the tokens as they were at a time. It does not change.
type snapshot struct {
	readAt time.Time
	err    error
	names  map[bus.Token]bus.ClientName
	// byDigest finds a client by its token's digest, so that the time taken tells nothing about tokens.
	byDigest map[[sha256.Size]byte]client
	byName   map[string][]client
}

func newDirectory(st *store.Store, rootKey string, now func() time.Time) *directory {
	return &directory{store: st, rootKey: rootKey, root: sha256.Sum256([]byte(rootKey)), now: now}
}

// find returns the client of the first of some secrets that is a token or the root key. The error is
// [bus.ErrUnavailable].
func (d *directory) find(ctx context.Context, secrets []string) (found client, ok bool, err error) {
	digests := make([][sha256.Size]byte, len(secrets))
	for i, secret := range secrets {
		digests[i] = sha256.Sum256([]byte(secret))
		if d.rootKey != "" && subtle.ConstantTimeCompare(digests[i][:], d.root[:]) == 1 {
			return client{name: bus.RootName, root: true}, true, nil
		}
	}
	known := d.read(ctx, directoryMaxAge)
	if known.err != nil {
		return client{}, false, known.err
	}
	for _, digest := range digests {
		if found, ok = known.byDigest[digest]; ok {
			return found, true, nil
		}
	}
	// One may be new, and must work at once on every process.
	for _, secret := range secrets {
		token := bus.Token(secret)
		if token.Validate() != nil {
			continue
		}
		if name, err := d.store.ClientName(ctx, token); err != nil || name != "" {
			return client{name: name, token: token}, name != "", err
		}
	}
	return client{}, false, nil
}

// findNamed returns the client of a name whose token, or root key, matches. Several tokens may bear one name. The
// error is [bus.ErrUnavailable].
func (d *directory) findNamed(ctx context.Context, name string, matches func(secret string) bool) (found client, ok bool, err error) {
	if name == string(bus.RootName) {
		if d.rootKey == "" {
			return client{}, false, nil
		}
		return client{name: bus.RootName, root: true}, matches(d.rootKey), nil
	}
	for _, maxAge := range []time.Duration{directoryMaxAge, missMaxAge} {
		known := d.read(ctx, maxAge)
		if known.err != nil {
			return client{}, false, known.err
		}
		for _, candidate := range known.byName[name] {
			if matches(string(candidate.token)) {
				found, ok = candidate, true
			}
		}
		if len(known.byName[name]) == 0 {
			matches("") // an unknown name takes as long as a wrong password
		}
		if ok {
			return found, true, nil
		}
	}
	return client{}, false, nil
}

// clientNames returns the name of every client by token. It must not be changed.
func (d *directory) clientNames(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	known := d.read(ctx, directoryMaxAge)
	return known.names, known.err
}

// forget makes the next request read the tokens again, because one was just added or removed here.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = snapshot{}
}

// read returns the tokens, which it reads again when they are older than maxAge. A failure is remembered as long as
// a success, so that a Redis that does not answer holds up one request, not each in turn.
func (d *directory) read(ctx context.Context, maxAge time.Duration) snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if age := now.Sub(d.current.readAt); age >= 0 && age < maxAge {
		return d.current
	}
	// The answer is for all who wait, so it does not end with this request.
	names, err := d.store.Tokens(context.WithoutCancel(ctx))
	read := snapshot{
		readAt: now, err: err, names: names,
		byDigest: make(map[[sha256.Size]byte]client, len(names)), byName: make(map[string][]client, len(names)),
	}
	if err != nil {
		read.readAt = d.now() // those who waited meanwhile do not wait for the next failure
	}
	for token, name := range names {
		c := client{name: name, token: token}
		read.byDigest[sha256.Sum256([]byte(token))] = c
		read.byName[string(name)] = append(read.byName[string(name)], c)
	}
	d.current = read
	return read
}
