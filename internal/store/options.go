package store

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// OptionsRecord is the stored form of a subscriber's options.
type OptionsRecord struct {
	// Version is theirs, which changes with every change. It is empty if the subscriber has
	// none.
	Version string
	Options bus.Options
	// Secrets are its signing secrets, as they are stored (JSON); empty if it has none.
	Secrets string
	// Unreadable says which option is not as this program writes it, and has its default.
	Unreadable error
}

// Options reads the options of a subscriber, by the token that holds the subscription: see
// [Store.Holder]. All are the defaults if there is no such subscriber. It fails with
// [bus.ErrUnavailable], or when the key is not of its type.
func (s *Store) Options(ctx context.Context, token bus.Token) (OptionsRecord, error) {
	stored, err := s.redis.HGetAll(ctx, s.keys.Options(token)).Result()
	if err != nil {
		return OptionsRecord{}, rdb.Wrap("read options", err)
	}
	return ReadOptions(stored), nil
}

// ReadOptions reads the hash of the options of a subscriber; an empty one is all the defaults.
func ReadOptions(stored map[string]string) OptionsRecord {
	options, err := bus.ParseOptions(stored)
	return OptionsRecord{Version: stored["plan"], Options: options, Secrets: stored["secrets"], Unreadable: err}
}
