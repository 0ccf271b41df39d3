package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/signature"
)

// scriptSecretsPut is described in its header.
var scriptSecretsPut = newScript("secrets_put")

// Secrets are the signing secrets of all subscribers in a store, by the token that holds the
// subscription: while that is being changed, the new one. The rules of a subscriber's list are in
// package signature; a delivery reads the list with the subscriber's options: options.go. It is
// safe for concurrent use.
type Secrets struct {
	store *Store
	redis *rdb.Partition
	keys  layout.Keys
}

// NewSecrets returns the signing secrets in a store.
func NewSecrets(st *Store) *Secrets {
	return &Secrets{st, st.Partition(), layout.Keys{Namespace: st.Partition().Namespace()}}
}

// List returns a subscriber's secrets, newest first, including expired ones. It fails with
// [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Secrets) List(ctx context.Context, token bus.Token) (signature.List, error) {
	text, err := s.read(ctx, token)
	if err != nil {
		return nil, err
	}
	return signature.ParseList(text)
}

// SecretExistsError means that a secret exists already, and has its stored form.
type SecretExistsError struct{ signature.Stored }

// Error implements error.
func (e *SecretExistsError) Error() string { return "there is a secret " + e.ID }

// Add gives a subscriber another secret. The others expire at a time, unless it is zero. It fails
// with [bus.ErrNotSubscribed], an [SecretExistsError] if there is one of that ID, which stays as it
// is, [bus.ErrTooManySecrets] or [bus.ErrUnavailable].
func (s *Secrets) Add(ctx context.Context, token bus.Token, secret signature.Stored, othersExpire, now time.Time) error {
	return s.change(ctx, token, func(l signature.List) (signature.List, error) {
		for _, there := range l.Current(now) {
			if there.ID == secret.ID {
				return nil, &SecretExistsError{there}
			}
		}
		return l.Add(secret, othersExpire, now)
	})
}

// Delete removes one of a subscriber's secrets. It fails with [bus.ErrNotSubscribed],
// [bus.ErrSecretUnknown] or [bus.ErrUnavailable].
func (s *Secrets) Delete(ctx context.Context, token bus.Token, id string, now time.Time) error {
	return s.change(ctx, token, func(l signature.List) (signature.List, error) {
		return l.Remove(id, now)
	})
}

// read returns the secrets as they are stored; empty if there is none.
func (s *Secrets) read(ctx context.Context, token bus.Token) (string, error) {
	var subscribed rdb.Reply[bool]
	var record rdb.Reply[[]any]
	err := s.redis.Pipelined(ctx, "read secrets", func(pipe rdb.Commands) {
		subscribed = pipe.SIsMember(ctx, s.keys.Subscribers(), string(token))
		record = pipe.HMGet(ctx, s.keys.Options(token), "secrets")
	})
	switch {
	case err != nil:
		return "", err
	case !subscribed.Val():
		return "", bus.ErrNotSubscribed
	}
	return rdb.Text(record.Val()[0]), nil
}

// errSecretsChanged means that the secrets have changed since they were read.
var errSecretsChanged = errors.New("the secrets have changed")

// changeTries is how often a change is tried if other changes of the secrets interfere.
const changeTries = 20

// change edits a subscriber's secrets with a function.
func (s *Secrets) change(ctx context.Context, token bus.Token, edit func(signature.List) (signature.List, error)) error {
	for range changeTries {
		before, err := s.read(ctx, token)
		if err != nil {
			return err
		}
		list, err := signature.ParseList(before)
		if err != nil {
			return err
		}
		if list, err = edit(list); err != nil {
			return err
		}
		if err = s.put(ctx, token, before, list.JSON()); !errors.Is(err, errSecretsChanged) {
			return err
		}
	}
	return fmt.Errorf("%w: others change the same secrets", bus.ErrUnavailable)
}

// put replaces a subscriber's secrets if they are still before, or fails with errSecretsChanged.
func (s *Secrets) put(ctx context.Context, token bus.Token, before, after string) error {
	change := s.store.redis.Change(ctx, scriptSecretsPut, string(token), before, after, bus.NewOptionsVersion())
	switch {
	case change.Err != nil:
		return rdb.Wrap("change secrets", change.Err)
	case change.Changed:
		return nil
	case change.Text(0) == "changed":
		return errSecretsChanged
	}
	return bus.ErrNotSubscribed
}
