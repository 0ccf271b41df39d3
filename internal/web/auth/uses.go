package auth

import (
	"context"
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

// uses has when tokens were last used. A request only stores a time in memory.
type uses struct {
	// note stores what was used since the last note; nil to store nothing.
	note func(context.Context, map[bus.Token]time.Time) error
	log  *slog.Logger

	mu sync.Mutex
	of map[bus.Token]*lastUse
}

// lastUse is when a token was last used, in ms since the Unix epoch; 0 if never in this process.
type lastUse struct {
	at atomic.Int64
	// noted is what was stored of it. Only [uses.flush] has it.
	noted int64
}

// find returns the last use of a token.
func (u *uses) find(token bus.Token) *lastUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[bus.Token]*lastUse{}
	}
	if u.of[token] == nil {
		u.of[token] = &lastUse{}
	}
	return u.of[token]
}

// retain forgets all tokens but some.
func (u *uses) retain(some map[bus.Token]bus.ClientName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for token := range u.of {
		if _, kept := some[token]; !kept {
			delete(u.of, token)
		}
	}
}

// flush notes what was used since the last note that succeeded.
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
