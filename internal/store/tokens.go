package store

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Tokens returns the name of every client, by token.
func (s *Store) Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error) {
	stored, err := s.redis.HGetAll(ctx, s.keys.Tokens()).Result()
	if err != nil {
		return nil, rdb.Wrap("list tokens", err)
	}
	names := make(map[bus.Token]bus.ClientName, len(stored))
	for token, name := range stored {
		names[bus.Token(token)] = bus.ClientName(name)
	}
	return names, nil
}

// ClientName returns the name of a token's client, empty when there is no such token.
func (s *Store) ClientName(ctx context.Context, token bus.Token) (bus.ClientName, error) {
	names, err := s.FindTokens(ctx, []bus.Token{token})
	return names[token], err
}

// FindTokens returns the names of the clients that have some tokens; unknown tokens are left out.
// It is one command however many tokens are given.
func (s *Store) FindTokens(ctx context.Context, tokens []bus.Token) (map[bus.Token]bus.ClientName, error) {
	fields := make([]string, len(tokens))
	for i, token := range tokens {
		fields[i] = string(token)
	}
	names, err := s.redis.HMGet(ctx, s.keys.Tokens(), fields...).Result()
	if err != nil {
		return nil, rdb.Wrap("find tokens", err)
	}
	found := map[bus.Token]bus.ClientName{}
	for i, name := range names {
		if name, ok := name.(string); ok {
			found[tokens[i]] = bus.ClientName(name)
		}
	}
	return found, nil
}

// PutToken registers a client's token, which may be registered for it already. It fails with
// [bus.ErrTokenTaken] or [bus.ErrUnavailable].
func (s *Store) PutToken(ctx context.Context, token bus.Token, name bus.ClientName) error {
	return s.Change(ctx, "add token", scriptTokenPut, string(token), string(name))
}

// AddToken registers a client's token unless it is registered already, even under another name.
func (s *Store) AddToken(ctx context.Context, token bus.Token, name bus.ClientName) error {
	return s.Change(ctx, "add token", scriptTokenAdd, string(token), string(name))
}

// DeleteToken removes a token, if it is there, and the subscriber of that token. The token's topics
// stay its client's.
func (s *Store) DeleteToken(ctx context.Context, token bus.Token) error {
	if err := s.bequeath(ctx, token); err != nil {
		return rdb.Wrap("delete token", err)
	}
	return s.Change(ctx, "delete token", scriptTokenDelete, string(token))
}

// bequeath notes whose the topics of a token are before it goes, a slice at a time, and gives them
// to another token of the same client, if there is one.
func (s *Store) bequeath(ctx context.Context, token bus.Token) error {
	names, err := s.Tokens(ctx)
	if err != nil || names[token] == "" {
		return err
	}
	heir := ""
	for other, name := range names {
		if other != token && name == names[token] {
			heir = string(other)
		}
	}
	return s.eachSlice(ctx, s.keys.Topics(), func(topics []string) error {
		args := []any{string(token), heir}
		for _, topic := range topics {
			args = append(args, topic)
		}
		return s.redis.Run(ctx, scriptTopicInherit, args...).Err()
	})
}

// sliceSize bounds how many topics one step of a script looks at.
const sliceSize = 200

// eachSlice calls a function with some members of a set at a time.
func (s *Store) eachSlice(ctx context.Context, key string, each func([]string) error) error {
	return s.redis.EachPage(ctx, key, rdb.Set, 0, func(page []string) error {
		for some := range slices.Chunk(page, sliceSize) {
			if err := each(some); err != nil {
				return err
			}
		}
		return nil
	})
}
