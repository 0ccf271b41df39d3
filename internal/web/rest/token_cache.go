package rest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
)

// tokenCacheTTL is how long the tokens are held in memory. A token that was removed stops working
// on every process within that time, which must be under a second. It is also the minimum time
// between two reads of all tokens, whatever requests come in.
const tokenCacheTTL = 800 * time.Millisecond

// tokenCache holds the tokens in memory, so that authentication costs no round trip.
type tokenCache struct {
	store   TokenStore
	rootKey string
	root    secretDigest
	now     func() time.Time
	unknown *negativeCache
	uses    *uses
	held    held

	mu sync.Mutex
	// current is nil until the tokens are read, and after they were changed by this process.
	current *snapshot
}

// maxHeaders bounds the memory for clients by header. At 200 bytes each they take 400 KB at most.
const maxHeaders = 2048

// secretDigest stands for a token, the root key or credentials. Finding tokens by their digests
// makes the time of a look-up independent of the tokens' text.
type secretDigest [sha256.Size]byte

func digestOf(secret string) secretDigest { return sha256.Sum256([]byte(secret)) }

// snapshot is the tokens as they were at a time. It is immutable but for byHeader, which has the
// clients whose Basic credentials came in a header, by its digest, and belongs to the cache's lock.
type snapshot struct {
	readAt   time.Time
	err      error
	names    map[bus.Token]bus.ClientName
	byDigest map[secretDigest]knownClient
	byName   map[string][]knownClient
	byCut    map[string][]cutSecret
	byHeader map[secretDigest]knownClient
}

// knownClient is a client, and when its token was last used.
type knownClient struct {
	Client
	*lastUse
}

// cutSecret is the password of a Digest client that gets its credentials as one text and cuts it at
// the first colon, as curl does: if the name or the token has a colon, its end comes before the
// rest.
type cutSecret struct {
	rest string
	// nameLen is how long the name in the text is, 0 for a token with an empty password.
	nameLen int
	knownClient
}

// maxCut bounds the credentials with one beginning that are cut: each costs every request that has
// the beginning as its user name a hash.
const maxCut = 100

// used returns a client whose token is used: to within [tokenCacheTTL], when the tokens were read.
func (s *snapshot) used(k knownClient) Client {
	k.at.Store(s.readAt.UnixMilli())
	return k.Client
}

func newTokenCache(store TokenStore, rootKey string, now func() time.Time) *tokenCache {
	return &tokenCache{
		store: store, rootKey: rootKey, root: digestOf(rootKey), now: now, unknown: newNegativeCache(now), uses: &uses{},
	}
}

// recall returns the client that [tokenCache.find] found for a header, if the tokens have not
// changed since.
func (c *tokenCache) recall(header secretDigest) (client Client, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isFresh() {
		return Client{}, false
	}
	known, ok := c.current.byHeader[header]
	if !ok {
		return Client{}, false
	}
	return c.current.used(known), true
}

// remember keeps a header's client as long as the tokens that it was found in.
func (c *tokenCache) remember(header secretDigest, client knownClient, tokens *snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(tokens.byHeader) >= maxHeaders {
		clear(tokens.byHeader)
	}
	tokens.byHeader[header] = client
}

// find returns the client of the first of some candidates whose secret is a token or the root key.
// They are from a header, given by its digest. The error is [ErrRefused] or [bus.ErrUnavailable].
func (c *tokenCache) find(ctx context.Context, header secretDigest, candidates []candidate) (Client, error) {
	digests := make([]secretDigest, len(candidates))
	for i, sent := range candidates {
		digests[i] = digestOf(sent.secret)
		if c.isRoot(digests[i]) && sent.mayBe(bus.RootName) {
			return root, nil
		}
	}
	tokens, _ := c.read(ctx)
	if tokens.err != nil {
		return Client{}, tokens.err
	}
	for i, digest := range digests {
		if client, ok := tokens.byDigest[digest]; ok && candidates[i].mayBe(client.Name) {
			c.remember(header, client, tokens)
			return tokens.used(client), nil
		}
	}
	return c.lookUp(ctx, header, candidates)
}

// root is the client that has the root key.
var root = Client{Name: bus.RootName, Root: true}

// isRoot reports whether a digest is the root key's.
func (c *tokenCache) isRoot(digest secretDigest) bool {
	return c.rootKey != "" && subtle.ConstantTimeCompare(digest[:], c.root[:]) == 1
}

// isCutRoot reports whether a user name and the password that matches are the root key with an
// empty password, cut at its first colon. It hides how much of the name is right.
func (c *tokenCache) isCutRoot(name string, matches func(secret string) bool) bool {
	beginning, end, found := strings.Cut(c.rootKey, ":")
	return found && matches(end+":") && subtle.ConstantTimeCompare([]byte(name), []byte(beginning)) == 1
}

// mayBe reports whether a candidate may be the secret of a client with a name.
func (c candidate) mayBe(name bus.ClientName) bool { return c.name == "" || c.name == string(name) }

// lookUp asks Redis for secrets that are not in memory: one may be a new token, which must work at
// once on every process. It sends one command, and none for a header whose secrets Redis did not
// know a moment ago. The error is as with [tokenCache.find].
func (c *tokenCache) lookUp(ctx context.Context, header secretDigest, candidates []candidate) (Client, error) {
	var tokens []bus.Token
	for _, sent := range candidates {
		if token := bus.Token(sent.secret); token.Validate() == nil {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		return Client{}, ErrRefused
	}
	known, remember := c.unknown.look(header)
	if known {
		return Client{}, ErrRefused
	}
	names, err := c.store.FindTokens(ctx, tokens)
	if err != nil {
		return Client{}, err
	}
	for _, sent := range candidates {
		token := bus.Token(sent.secret)
		if name, ok := names[token]; ok && sent.mayBe(name) {
			c.uses.find(token).at.Store(c.now().UnixMilli())
			return Client{Name: name, Token: token}, nil
		}
	}
	remember()
	return Client{}, ErrRefused
}

// findNamed returns the client of a name whose token, or root key, matches. Several tokens may have
// one name. It also takes a token or the root key as the name, if the empty secret matches, and it
// takes a [cutSecret]. The error is [ErrRefused], [bus.ErrUnavailable], or the context's.
func (c *tokenCache) findNamed(
	ctx context.Context, name string, matches func(secret string) bool,
) (Client, error) {
	if name == string(bus.RootName) {
		if c.rootKey == "" || !matches(c.rootKey) {
			return Client{}, ErrRefused
		}
		return root, nil
	}
	if c.isRoot(digestOf(name)) && matches("") || c.isCutRoot(name, matches) {
		return root, nil
	}
	tokens, fresh := c.read(ctx)
	client, err := tokens.match(name, matches)
	if err != ErrRefused || fresh {
		return client, err
	}
	// The token may be new, and must work at once on every process.
	if tokens, err = c.readAfter(ctx, tokens); err != nil {
		return Client{}, err
	}
	return tokens.match(name, matches)
}

// match returns the client of a name whose token matches, or of a token. The error is [ErrRefused],
// or why the tokens could not be read.
func (s *snapshot) match(name string, matches func(secret string) bool) (client Client, err error) {
	if s.err != nil {
		return Client{}, s.err
	}
	err = ErrRefused
	for _, candidate := range s.byName[name] {
		if matches(string(candidate.Token)) {
			client, err = s.used(candidate), nil
		}
	}
	if len(s.byName[name]) == 0 {
		matches("") // an unknown name takes as long as a wrong password
	}
	known, isToken := s.byDigest[digestOf(name)]
	if matches("") && isToken && err == ErrRefused {
		return s.used(known), nil
	}
	if cut := s.matchCut(name, matches); cut != nil && err == ErrRefused {
		return s.used(*cut), nil
	}
	return client, err
}

// matchCut returns the client whose credentials begin with a user name that ends at their first
// colon, and go on with a password that matches; nil if there is none. As with Basic credentials, a
// name with its token comes before a token, and the longest name counts.
func (s *snapshot) matchCut(user string, matches func(secret string) bool) (found *knownClient) {
	cut, longest := s.byCut[user], -1
	if len(cut) > maxCut {
		cut = nil
	}
	for i := range cut {
		if matches(cut[i].rest) && cut[i].nameLen > longest {
			found, longest = &cut[i].knownClient, cut[i].nameLen
		}
	}
	if len(cut) == 0 {
		matches("") // an unknown beginning takes as long as a wrong password
	}
	return found
}

// clientNames returns the name of every client by token. It must not be changed. The error is
// [bus.ErrUnavailable].
func (c *tokenCache) clientNames(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	tokens, _ := c.read(ctx)
	return tokens.names, tokens.err
}

// invalidate makes the next request read the tokens again, because this process added or removed
// one.
func (c *tokenCache) invalidate() {
	c.mu.Lock()
	c.current = nil
	c.unknown.clear()
	c.mu.Unlock()
	c.held.look()
}

// isFresh reports whether current need not be read again. The caller holds the lock.
func (c *tokenCache) isFresh() bool {
	if c.current == nil {
		return false
	}
	age := c.now().Sub(c.current.readAt)
	return age >= 0 && age < tokenCacheTTL
}

// read returns the tokens, and reads them again when they are older than tokenCacheTTL; fresh is
// whether this call did. A failure is remembered as long as a success: while Redis does not answer,
// concurrent requests wait together, not one after the other.
func (c *tokenCache) read(ctx context.Context) (tokens *snapshot, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isFresh() {
		return c.current, false
	}
	return c.reload(ctx), true
}

// readAfter returns tokens that were read after a snapshot was. All callers share one read, and
// wait for it until a read is due: wrong credentials do not make Redis send all tokens more often.
// The error is the context's.
func (c *tokenCache) readAfter(ctx context.Context, old *snapshot) (*snapshot, error) {
	due := time.NewTimer(min(max(0, tokenCacheTTL-c.now().Sub(old.readAt)), tokenCacheTTL))
	defer due.Stop()
	select {
	case <-due.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current != old {
		return c.current, nil
	}
	return c.reload(ctx), nil
}

// reload reads the tokens. The caller holds the lock.
func (c *tokenCache) reload(ctx context.Context) *snapshot {
	now, read := c.now(), c.uses.beginRead()
	// The result is for all requests that wait, so the read does not end with this one.
	names, err := c.store.Tokens(context.WithoutCancel(ctx))
	switch was := c.current; {
	case err != nil:
		c.current = &snapshot{readAt: c.now(), err: err} // from now: waiting readers share it
	case was != nil && was.err == nil && maps.Equal(was.names, names): // as nearly always
		same := *was
		same.readAt = now
		c.current = &same
	default:
		c.current = c.snapshotOf(names, now)
	}
	if err == nil {
		c.uses.retain(names, read)
	}
	return c.current
}

func (c *tokenCache) snapshotOf(names map[bus.Token]bus.ClientName, readAt time.Time) *snapshot {
	read := &snapshot{
		readAt: readAt, names: names,
		byDigest: make(map[secretDigest]knownClient, len(names)), byName: make(map[string][]knownClient, len(names)),
		byHeader: map[secretDigest]knownClient{}, byCut: map[string][]cutSecret{},
	}
	cut := func(user, password string, nameLen int, client knownClient) {
		if beginning, end, found := strings.Cut(user, ":"); found {
			read.byCut[beginning] = append(read.byCut[beginning], cutSecret{end + ":" + password, nameLen, client})
		}
	}
	for token, name := range names {
		client := knownClient{Client{Name: name, Token: token}, c.uses.find(token)}
		read.byDigest[digestOf(string(token))] = client
		read.byName[string(name)] = append(read.byName[string(name)], client)
		cut(string(name), string(token), len(name), client)
		cut(string(token), "", 0, client)
	}
	return read
}
