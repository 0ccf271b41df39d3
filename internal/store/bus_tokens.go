package store

import (
	"context"
	"errors"
	"math/rand/v2"

	"routemaster/internal/bus"
)

// Tokens returns the name of every client, by token. It fails with [bus.ErrUnavailable].
func (s *Bus) Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	return askFrom(ctx, s, s.all[rand.IntN(len(s.all))], func(ctx context.Context, st *Store) (map[bus.Token]bus.ClientName, error) {
		return st.Tokens(ctx)
	})
}

// FindTokens is [Store.FindTokens].
func (s *Bus) FindTokens(ctx context.Context, tokens []bus.Token) (map[bus.Token]bus.ClientName, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	return askFrom(ctx, s, s.Of(tokens[0]), func(ctx context.Context, st *Store) (map[bus.Token]bus.ClientName, error) {
		return st.FindTokens(ctx, tokens)
	})
}

// ClientName returns the name of a token's client, empty when there is no such token. It fails with
// [bus.ErrUnavailable].
func (s *Bus) ClientName(ctx context.Context, token bus.Token) (bus.ClientName, error) {
	names, err := s.FindTokens(ctx, []bus.Token{token})
	return names[token], err
}

// PutToken registers a client's token, which may be registered for it already. It fails with
// [bus.ErrTokenTaken] or [bus.ErrUnavailable].
func (s *Bus) PutToken(ctx context.Context, token bus.Token, name bus.ClientName) error {
	if err := s.Of(token).PutToken(ctx, token, name); err != nil {
		return err
	}
	return s.spread(ctx, token, name)
}

// spread registers a token in all partitions but its own, which decides whose it is.
func (s *Bus) spread(ctx context.Context, token bus.Token, name bus.ClientName) error {
	return eachStore(s.others(s.Of(token)), func(st *Store) error {
		err := st.PutToken(ctx, token, name)
		if !errors.Is(err, bus.ErrTokenTaken) {
			return err
		}
		// It was another client's before, and was removed in a part of the partitions.
		if err := st.DeleteToken(ctx, token); err != nil {
			return err
		}
		return st.PutToken(ctx, token, name)
	})
}

// AddToken registers a client's token unless it is registered already, even under another name. It
// fails with [bus.ErrUnavailable].
func (s *Bus) AddToken(ctx context.Context, token bus.Token, name bus.ClientName) error {
	st := s.Of(token)
	if err := st.AddToken(ctx, token, name); err != nil || len(s.all) == 1 {
		return err
	}
	name, err := st.ClientName(ctx, token)
	if err != nil || name == "" { // it was removed meanwhile
		return err
	}
	return s.spread(ctx, token, name)
}

// DeleteToken removes a token, if it is there, and the subscriber of that token. The token's topics
// stay its client's. It fails with [bus.ErrUnavailable].
func (s *Bus) DeleteToken(ctx context.Context, token bus.Token) error {
	if err := s.deleteTokenElsewhere(ctx, token); err != nil {
		return err
	}
	return s.Of(token).DeleteToken(ctx, token)
}

// deleteTokenElsewhere removes a token in all partitions but its own, which comes last: it decides
// whose the token is, and knows whether it is being rotated, so that all this can be repeated.
func (s *Bus) deleteTokenElsewhere(ctx context.Context, token bus.Token) error {
	return eachStore(s.others(s.Of(token)), func(st *Store) error { return st.DeleteToken(ctx, token) })
}

// RotateToken begins to change a client's token for a new one, which it draws: see
// [Store.RotateToken]. The new one belongs to the same partition, so the client's queue stays where
// it is.
func (s *Bus) RotateToken(ctx context.Context, old bus.Token) (token bus.Token, name bus.ClientName, err error) {
	st := s.Of(old)
	if name, err = st.ClientName(ctx, old); err != nil {
		return "", "", err
	}
	fresh, _ := s.TokenIn(st, func() (bus.Token, error) { return bus.NewTokenLike(name), nil })
	if token, name, err = st.RotateToken(ctx, old, fresh); err != nil {
		return "", "", err
	}
	return token, name, s.spread(ctx, token, name)
}

// TokenIn draws tokens until one belongs to the partition of a store.
func (s *Bus) TokenIn(st *Store, draw func() (bus.Token, error)) (token bus.Token, err error) {
	for token, err = draw(); err == nil && s.Of(token) != st; {
		token, err = draw()
	}
	return token, err
}

// FinishRotation removes the old token of a rotation whose batches are all relabelled. It fails
// with [bus.ErrUnavailable].
func (s *Bus) FinishRotation(ctx context.Context, old bus.Token) error {
	if err := s.deleteTokenElsewhere(ctx, old); err != nil {
		return err
	}
	return s.Of(old).FinishRotation(ctx, old)
}

// maxSyncs is how often partitions follow a token that changes meanwhile.
const maxSyncs = 6

// SyncToken copies a token's registration from its own partition, which decides, to all others. It
// completes an interrupted change. A token that its own partition does not know is left unchanged.
// It fails with [bus.ErrUnavailable].
func (s *Bus) SyncToken(ctx context.Context, token bus.Token) error {
	own, synced := s.Of(token), false
	var before bus.ClientName
	for range maxSyncs {
		name, err := own.ClientName(ctx, token)
		if err == nil {
			err = own.Partition().RequireOpen(ctx) // or it may know nothing
		}
		if err != nil || name == "" || synced && name == before {
			return err
		}
		if err := s.spread(ctx, token, name); err != nil {
			return err
		}
		before, synced = name, true
	}
	return bus.ErrUnavailable
}
