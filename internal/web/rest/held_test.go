package rest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func heldTokens() (*fixedTokens, *Authenticator) {
	tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice", "alice--2": "alice", "bob--1": "bob"}}
	return tokens, New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, tokens, slog.New(slog.DiscardHandler), time.Now)
}

func (f *fixedTokens) change(change func(map[bus.Token]bus.ClientName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.names)
}

func (f *fixedTokens) countReads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.reads)
}

// TestWhatIsHeldEndsWithItsToken removes a token of a client, as another process does, while
// requests are held open and no other comes.
func TestWhatIsHeldEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, a := heldTokens()
		hold := func(secret string) (context.Context, func()) {
			client, err := a.tokens.find(t.Context(), digestOf(secret), []candidate{{secret: secret}})
			assert.NoError(t, err)
			return a.Hold(t.Context(), client)
		}
		old, releaseOld := hold("alice--1")
		same, releaseSame := hold("alice--1")
		renewed, releaseRenewed := hold("alice--2")
		other, releaseOther := hold("bob--1")
		root, releaseRoot := hold("the-root-key")
		releaseSame()
		assert.ErrorIs(t, context.Cause(same), context.Canceled, "its request has ended")
		time.Sleep(time.Minute + time.Millisecond)
		assert.NoError(t, old.Err())

		tokens.change(func(names map[bus.Token]bus.ClientName) { delete(names, "alice--1") })
		removed := time.Now()
		<-old.Done()
		assert.Less(t, time.Since(removed), time.Second)
		assert.ErrorIs(t, context.Cause(old), ErrRefused)
		late, releaseLate := a.Hold(t.Context(), Client{Name: "alice", Token: "alice--1"})
		assert.ErrorIs(t, context.Cause(late), ErrRefused, "it was authenticated a moment ago")
		assert.ErrorIs(t, a.Confirm(t.Context(), Client{Name: "alice", Token: "alice--1"}), ErrRefused)
		assert.NoError(t, a.Confirm(t.Context(), Client{Name: "bob", Token: "bob--1"}))

		tokens.change(func(names map[bus.Token]bus.ClientName) { delete(names, "bob--1") })
		before := time.Now()
		a.TokensChanged() // it was this process
		<-other.Done()
		assert.Equal(t, before, time.Now(), "at once")
		time.Sleep(time.Minute + time.Millisecond) // no read begins now
		synctest.Wait()
		for _, still := range []context.Context{renewed, root} {
			assert.NoError(t, still.Err())
		}
		for _, release := range []func(){releaseOld, releaseRenewed, releaseOther, releaseRoot, releaseLate} {
			release()
		}
		reads := tokens.countReads()
		time.Sleep(time.Hour)
		assert.Equal(t, reads, tokens.countReads(), "nothing is held, so nothing is read")
	})
}

// missingTokens finds a token that its list does not have yet.
type missingTokens struct{ *fixedTokens }

func (missingTokens) FindTokens(_ context.Context, tokens []bus.Token) (map[bus.Token]bus.ClientName, error) {
	return map[bus.Token]bus.ClientName{tokens[0]: "new"}, nil
}

// TestANewTokenIsNotTakenForARemovedOne delivers a list of the tokens that was read before one of
// them was made.
func TestANewTokenIsNotTakenForARemovedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{}}
		a := New(Config{RootKey: "the-root-key"}, missingTokens{tokens}, slog.New(slog.DiscardHandler), time.Now)
		began := a.tokens.uses.beginRead()
		client, err := a.tokens.find(t.Context(), digestOf("new--1"), []candidate{{secret: "new--1"}})
		assert.NoError(t, err)
		held, release := a.Hold(t.Context(), client)
		defer release()
		a.tokens.uses.retain(map[bus.Token]bus.ClientName{}, began)
		synctest.Wait()
		assert.NoError(t, held.Err())
		<-held.Done() // the next read does not have it either
		assert.ErrorIs(t, context.Cause(held), ErrRefused)
	})
}
