package rest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestUsesOfTokensAreNotedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice", "bob--1": "bob"}}
		var mu sync.Mutex // of what follows
		var noted []map[bus.Token]time.Time
		var failure error
		a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute, NoteUses: func(_ context.Context, used map[bus.Token]time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, used)
			return failure
		}}, tokens, slog.New(slog.DiscardHandler), time.Now)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			a.Run(ctx)
			close(ended)
		}()
		use := func(token string) (at map[bus.Token]time.Time) {
			_, err := a.tokens.find(ctx, secretDigest{}, []candidate{{secret: token}})
			assert.NoError(t, err)
			return map[bus.Token]time.Time{bus.Token(token): time.UnixMilli(time.Now().UnixMilli())}
		}
		var want []map[bus.Token]time.Time
		step := func(used map[bus.Token]time.Time) {
			t.Helper()
			time.Sleep(noteInterval)
			synctest.Wait()
			if used != nil {
				want = append(want, used)
			}
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, want, noted)
		}
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failure = err
		}
		step(nil)
		use("the-root-key")
		step(nil)
		use("alice--1")
		time.Sleep(tokenCacheTTL)
		step(use("alice--1"))
		step(nil)
		fail(errors.New("Redis is away"))
		bob := use("bob--1")
		step(bob)
		fail(nil)
		step(bob)
		step(nil)

		use("bob--1")
		alice := use("alice--1")
		delete(tokens.names, "bob--1")
		time.Sleep(tokenCacheTTL)
		_, err := a.tokens.find(ctx, secretDigest{}, []candidate{{secret: "bob--1"}})
		assert.Equal(t, ErrRefused, err)
		stop()
		<-ended
		assert.Equal(t, append(want, alice), noted, "a process that ends notes what it knows")
	})
}

func TestEachWayToAuthenticateIsAUse(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	c := newTokenCache(&fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}, "the-root-key", func() time.Time { return now })
	used := func() time.Time { return time.UnixMilli(c.uses.find("alice--1").at.Load()) }
	for _, authenticate := range []func() error{
		func() error {
			_, err := c.find(t.Context(), secretDigest{}, []candidate{{secret: "alice--1"}})
			return err
		},
		func() error {
			_, err := c.findNamed(t.Context(), "alice", func(secret string) bool { return secret == "alice--1" })
			return err
		},
	} {
		now = now.Add(time.Hour)
		assert.NoError(t, authenticate())
		assert.Equal(t, now, used())
	}
	now = now.Add(time.Hour)
	_, err := c.findNamed(t.Context(), "alice", func(string) bool { return false })
	assert.Equal(t, ErrRefused, err)
	assert.True(t, used().Before(now), "who is refused has not used it")
}
