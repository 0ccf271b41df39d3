package rest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
)

const (
	// noteInterval is the pause between two notes of when tokens were last used.
	noteInterval = time.Minute
	// noteTimeout bounds a note, also of a process that ends.
	noteTimeout = time.Second
)

// errRevoked is the cause that ends requests held open for a removed token. It is an [ErrRefused].
var errRevoked = fmt.Errorf("%w: the token was removed", ErrRefused)

// uses records when tokens were last used, and cancels the requests held open for removed ones. A
// request only stores a time in memory.
type uses struct {
	// note stores the uses since the last note; nil to store nothing.
	note func(context.Context, map[bus.Token]time.Time) error
	log  *slog.Logger

	mu sync.Mutex
	of map[bus.Token]*lastUse
	// reads counts the reads of all tokens that were begun.
	reads int64
}

// lastUse is when a token was last used, in ms since the Unix epoch; 0 if never in this process.
type lastUse struct {
	at atomic.Int64
	// noted is the time stored last. Only [uses.flush] uses it.
	noted int64
	// found is how many reads of all tokens had begun when the token was last known to exist.
	found int64
	// gone is done, with the cause [errRevoked], when the token is known to be removed.
	gone   context.Context
	revoke context.CancelCauseFunc
}

// find returns the last use of a token that exists.
func (u *uses) find(token bus.Token) *lastUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[bus.Token]*lastUse{}
	}
	use := u.of[token]
	if use == nil {
		use = &lastUse{}
		use.gone, use.revoke = context.WithCancelCause(context.Background())
		u.of[token] = use
	}
	use.found = u.reads
	return use
}

// known returns the last use of a token, nil if it was removed.
func (u *uses) known(token bus.Token) *lastUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[token]
}

// beginRead notes that a read of all tokens begins, and returns its number.
func (u *uses) beginRead() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reads++
	return u.reads
}

// retain forgets all tokens but some, which a read found, and ends the requests held open for the
// others. It keeps a token that was found after the read began: the read may have missed it.
func (u *uses) retain(some map[bus.Token]bus.ClientName, read int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for token, use := range u.of {
		if _, kept := some[token]; !kept && use.found < read {
			delete(u.of, token)
			use.revoke(errRevoked)
		}
	}
}

// flush notes the uses since the last note that succeeded.
func (u *uses) flush(ctx context.Context) {
	used := map[bus.Token]time.Time{}
	u.mu.Lock()
	for token, use := range u.of {
		if at := use.at.Load(); at > use.noted {
			used[token] = time.UnixMilli(at)
		}
	}
	u.mu.Unlock()
	if len(used) == 0 || u.note == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if err := u.note(ctx, used); err != nil {
		u.log.Warn("cannot note when tokens were last used", "error", err)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for token, at := range used {
		if use := u.of[token]; use != nil {
			use.noted = at.UnixMilli()
		}
	}
}

// run flushes at every interval until the context is done, and then once more.
func (u *uses) run(ctx context.Context) {
	ticker := time.NewTicker(noteInterval)
	defer ticker.Stop()
	defer u.flush(ctx)
	for {
		select {
		case <-ticker.C:
			u.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}
