package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/signature"
)

// Secrets lists a subscriber's signing secrets, newest first, also those that have expired. It
// fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Store) Secrets(ctx context.Context, token bus.Token) (signature.List, error) {
	text, err := s.readSecrets(ctx, token)
	if err != nil {
		return nil, err
	}
	return signature.ParseList(text)
}

// AddSecret gives a subscriber another signing secret. The others expire at a time, unless it is
// zero. It fails with [bus.ErrNotSubscribed], [bus.ErrTooManySecrets] or [bus.ErrUnavailable].
func (s *Store) AddSecret(ctx context.Context, token bus.Token, secret signature.Stored, othersExpire, now time.Time) error {
	return s.changeSecrets(ctx, token, func(l signature.List) (signature.List, error) {
		return l.Add(secret, othersExpire, now)
	})
}

// DeleteSecret removes one of a subscriber's signing secrets. It fails with
// [bus.ErrNotSubscribed], [bus.ErrSecretUnknown] or [bus.ErrUnavailable].
func (s *Store) DeleteSecret(ctx context.Context, token bus.Token, id string, now time.Time) error {
	return s.changeSecrets(ctx, token, func(l signature.List) (signature.List, error) {
		return l.Remove(id, now)
	})
}

// readSecrets returns the secrets as they are stored; empty if there is none.
func (s *Store) readSecrets(ctx context.Context, token bus.Token) (string, error) {
	token, err := s.Holder(ctx, token)
	if err != nil {
		return "", err
	}
	var subscribed rdb.Reply[bool]
	var record rdb.Reply[[]any]
	err = s.redis.Pipelined(ctx, "read secrets", func(pipe rdb.Commands) {
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

// errChanged says that the secrets are not any more what they were when they were read.
var errChanged = errors.New("the secrets have changed")

// changeTries is how often a change is tried whose secrets others change at the same time.
const changeTries = 20

// changeSecrets replaces a subscriber's secrets by what change makes of them.
func (s *Store) changeSecrets(ctx context.Context, token bus.Token, change func(signature.List) (signature.List, error)) error {
	for range changeTries {
		before, err := s.readSecrets(ctx, token)
		if err != nil {
			return err
		}
		list, err := signature.ParseList(before)
		if err != nil {
			return err
		}
		if list, err = change(list); err != nil {
			return err
		}
		err = s.change(ctx, "change secrets", scriptSecretsPut, string(token), before, list.JSON(), bus.NewPlan())
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return fmt.Errorf("%w: others change the same secrets", bus.ErrUnavailable)
}
