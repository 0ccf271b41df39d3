package rest

import (
	"context"
	"sync"
	"time"
)

// Hold is for a request that stays open for long: its answer waits, or is a stream. The context it
// returns is done when the request's is, and within a second after the client's token was removed;
// its cause is then an [ErrRefused]. Release must be called when the request ends.
//
// While requests are held, this process reads the tokens every [tokenCacheTTL], however many they
// are.
func (a *Authenticator) Hold(ctx context.Context, client Client) (held context.Context, release func()) {
	if client.Token == "" { // the root key holds as long as the process
		return ctx, func() {}
	}
	held, cancel := context.WithCancelCause(ctx)
	use := a.tokens.uses.known(client.Token)
	if use == nil {
		cancel(errRevoked)
		return held, func() {}
	}
	forget := context.AfterFunc(use.gone, func() { cancel(errRevoked) })
	leave := a.tokens.hold()
	return held, func() {
		leave()
		forget()
		cancel(nil)
	}
}

// Confirm checks a client again that was authenticated a while ago. The error is [ErrRefused] if
// its token was removed meanwhile. While Redis is away, every token stays.
func (a *Authenticator) Confirm(ctx context.Context, client Client) error {
	if client.Token == "" {
		return nil
	}
	a.tokens.read(ctx)
	if a.tokens.uses.known(client.Token) == nil {
		return errRevoked
	}
	return nil
}

// held counts the requests that are held open, and reads the tokens periodically while there are
// any.
type held struct {
	mu    sync.Mutex
	count int
	// timer reads the tokens; nil while nothing is held.
	timer *time.Timer
}

// hold notes that a request is held open until leave is called.
func (c *tokenCache) hold() (leave func()) {
	c.mu.Lock()
	due := time.Duration(0)
	if c.isFresh() {
		due = tokenCacheTTL - c.now().Sub(c.current.readAt)
	}
	c.mu.Unlock()
	h := &c.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count++; h.count == 1 {
		h.timer = time.AfterFunc(due, c.readForHeld)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.count--; h.count == 0 {
			h.timer.Stop()
			h.timer = nil
		}
	}
}

// readForHeld reads the tokens, and schedules the next read as long as requests are held.
func (c *tokenCache) readForHeld() {
	c.mu.Lock()
	c.reload(context.Background())
	c.mu.Unlock()
	c.held.again(tokenCacheTTL)
}

// look reads the tokens now, if requests are held.
func (h *held) look() { h.again(0) }

func (h *held) again(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Reset(after)
	}
}
