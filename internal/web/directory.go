package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"routemaster/internal/bus"
)

// directoryMaxAge is how long the tokens are held in memory: a token that was removed stops working everywhere within
// that time, which must be under a second. It is also the pause between two reads of all tokens, whatever comes in.
const directoryMaxAge = 500 * time.Millisecond

// tokenStore is where the tokens are; [store.Store] is one.
type tokenStore interface {
	Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error)
	FindToken(ctx context.Context, tokens []bus.Token) (bus.Token, bus.ClientName, error)
}

// directory knows the clients' tokens. It holds them in memory, so that authentication costs a
// publish no round trip.
type directory struct {
	store   tokenStore
	rootKey string
	root    [sha256.Size]byte
	now     func() time.Time
	refused *refusals

	mu sync.Mutex
	// current is nil until the tokens are read, and after a change.
	current *snapshot
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

func newDirectory(st tokenStore, rootKey string, now func() time.Time) *directory {
	return &directory{store: st, rootKey: rootKey, root: sha256.Sum256([]byte(rootKey)), now: now, refused: newRefusals(now)}
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
	known, _ := d.read(ctx)
	if known.err != nil {
		return client{}, false, known.err
	}
	for _, digest := range digests {
		if found, ok = known.byDigest[digest]; ok {
			return found, true, nil
		}
	}
	return d.lookUp(ctx, secrets, digests)
}

// lookUp asks Redis for secrets that are not in memory: one may be new, and must work at once on every process. It
// is one command, and none for what Redis has just not known.
func (d *directory) lookUp(ctx context.Context, secrets []string, digests [][sha256.Size]byte) (found client, ok bool, err error) {
	var tokens []bus.Token
	for _, secret := range secrets {
		if token := bus.Token(secret); token.Validate() == nil {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		return client{}, false, nil
	}
	credentials := digests[0] // of the longest secret, which holds the others
	known, refuse := d.refused.look(credentials)
	if known {
		return client{}, false, nil
	}
	token, name, err := d.store.FindToken(ctx, tokens)
	if err != nil {
		return client{}, false, err
	}
	if token == "" {
		refuse()
		return client{}, false, nil
	}
	return client{name: name, token: token}, true, nil
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
	known, fresh := d.read(ctx)
	found, ok = known.match(name, matches)
	if ok || fresh || known.err != nil {
		return found, ok, known.err
	}
	// The token may be new, and must work at once on every process.
	if known, err = d.readAfter(ctx, known); err != nil {
		return client{}, false, err
	}
	found, ok = known.match(name, matches)
	return found, ok, known.err
}

// match returns the client of a name whose token matches.
func (s *snapshot) match(name string, matches func(secret string) bool) (found client, ok bool) {
	for _, candidate := range s.byName[name] {
		if matches(string(candidate.token)) {
			found, ok = candidate, true
		}
	}
	if len(s.byName[name]) == 0 {
		matches("") // an unknown name takes as long as a wrong password
	}
	return found, ok
}

// clientNames returns the name of every client by token. It must not be changed.
func (d *directory) clientNames(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	known, _ := d.read(ctx)
	return known.names, known.err
}

// forget makes the next request read the tokens again, because one was just added or removed here.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = nil
	d.refused.forget()
}

// read returns the tokens, which it reads again when they are too old; fresh is whether this call did. A failure is
// remembered as long as a success, so that a Redis that does not answer holds up one request, not each in turn.
func (d *directory) read(ctx context.Context) (known *snapshot, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		if age := d.now().Sub(d.current.readAt); age >= 0 && age < directoryMaxAge {
			return d.current, false
		}
	}
	return d.reload(ctx), true
}

// readAfter returns tokens that were read after a snapshot was taken out of memory. All who ask share one read, and
// wait for it until another is due: wrong credentials do not make Redis send all tokens more often. The error is the
// context's.
func (d *directory) readAfter(ctx context.Context, known *snapshot) (*snapshot, error) {
	due := time.NewTimer(min(max(0, directoryMaxAge-d.now().Sub(known.readAt)), directoryMaxAge))
	defer due.Stop()
	select {
	case <-due.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil && d.current != known {
		return d.current, nil
	}
	return d.reload(ctx), nil
}

// reload reads the tokens; the caller holds the lock.
func (d *directory) reload(ctx context.Context) *snapshot {
	now := d.now()
	// The answer is for all who wait, so it does not end with this request.
	names, err := d.store.Tokens(context.WithoutCancel(ctx))
	read := &snapshot{
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
