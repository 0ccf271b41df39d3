package app

import (
	"context"

	"routemaster/internal/store"
)

// Migration says what to move between the Ruby original's layout and ours.
type Migration = store.Migration

// Unmoved is something that a migration leaves.
type Unmoved = store.Unmoved

// Migrated counts what a migration has done.
type Migrated = store.Migrated

// Migrate moves what the Ruby original has left in the configured Redis to where this program has
// it, or back. The bus may run meanwhile.
func Migrate(ctx context.Context, c Config, m Migration) (Migrated, error) {
	redis, st, err := openForCommand(c)
	if err != nil {
		return Migrated{}, err
	}
	defer redis.Close()
	return st.Migrate(ctx, m)
}
