package store

import (
	"context"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// scriptTokensUsed is described in its header.
var scriptTokensUsed = newScript("tokens_used")

// maxNoted is how many tokens one step notes.
const maxNoted = 500

// NoteTokensUsed notes when tokens were last used, unless a later time is noted, and forgets tokens
// that are gone. It fails with [bus.ErrUnavailable].
func NoteTokensUsed(ctx context.Context, st *Store, used map[bus.Token]time.Time) error {
	var args []any
	for token, at := range used {
		args = append(args, string(token), at.UnixMilli())
		if len(args) == 2*maxNoted {
			if err := noteTokensUsed(ctx, st, args); err != nil {
				return err
			}
			args = nil
		}
	}
	return noteTokensUsed(ctx, st, args)
}

func noteTokensUsed(ctx context.Context, st *Store, args []any) error {
	return rdb.Wrap("note the use of tokens", st.Partition().Run(ctx, scriptTokensUsed, args...).Err())
}

// TokensUsed returns when tokens were last used, as far as it is noted, which may be a minute late.
// It fails with [bus.ErrUnavailable].
func TokensUsed(ctx context.Context, st *Store) (map[bus.Token]time.Time, error) {
	noted, err := st.Partition().HGetAll(ctx, layout.Keys{Namespace: st.Partition().Namespace()}.TokensUsed()).Result()
	if err != nil && !rdb.IsWrongType(err) {
		return nil, rdb.Wrap("read the use of tokens", err)
	}
	used := make(map[bus.Token]time.Time, len(noted))
	for token, text := range noted {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			used[bus.Token(token)] = time.UnixMilli(at)
		}
	}
	return used, nil
}
