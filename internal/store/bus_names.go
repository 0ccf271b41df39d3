package store

import (
	"context"
	"slices"

	"routemaster/internal/bus"
)

// TokensNamed returns the tokens of a client's public name, sorted. It fails with
// [bus.ErrTokenUnknown] if there is none, or with [bus.ErrUnavailable].
func (s *Bus) TokensNamed(ctx context.Context, client bus.ClientName) (tokens []bus.Token, err error) {
	names, err := s.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	for token, name := range names {
		if bus.PublicName(token, name) == client {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		return nil, bus.ErrTokenUnknown
	}
	slices.Sort(tokens)
	return tokens, nil
}

// TokenToRotate returns the token of a client that is meant by its name when it is to be rotated:
// the one whose rotation is under way, or else the only one. If the rotation has begun, it is only
// the former: then a last step that is repeated begins no other rotation. It fails with
// [bus.ErrTokenUnknown], [bus.ErrManyTokens] or [bus.ErrUnavailable].
func (s *Bus) TokenToRotate(ctx context.Context, client bus.ClientName, hasBegun bool) (meant bus.Token, err error) {
	tokens, err := s.TokensNamed(ctx, client)
	if err != nil {
		return "", err
	}
	for _, token := range tokens {
		isRotating, err := s.Of(token).IsRotating(ctx, token)
		switch {
		case err != nil:
			return "", err
		case isRotating && meant != "":
			return "", bus.ErrManyTokens
		case isRotating:
			meant = token
		}
	}
	switch {
	case meant != "":
		return meant, nil
	case hasBegun:
		return "", bus.ErrTokenUnknown
	case len(tokens) > 1:
		return "", bus.ErrManyTokens
	}
	return tokens[0], nil
}
