// Package lastuse keeps when tokens were last used: an operator who removes one wants to know that
// nobody needs it any more.
package lastuse

import (
	"context"
	"embed"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// scriptTokensUsed is described in its header.
var scriptTokensUsed = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "tokens_used"))

// Keys is the key of the times, under a namespace. It is not of the founding layout.
type Keys struct{ Namespace string }

// Times is a hash: token to when it was last used (ms).
func (k Keys) Times() string { return k.Namespace + "api_tokens:used" }

// maxNoted is how many tokens one step notes.
const maxNoted = 500

// Note notes when tokens were last used, unless a later time is noted, and forgets tokens that are
// gone. It fails with [bus.ErrUnavailable].
func Note(ctx context.Context, st *store.Store, used map[bus.Token]time.Time) error {
	var args []any
	for token, at := range used {
		args = append(args, string(token), at.UnixMilli())
		if len(args) == 2*maxNoted {
			if err := note(ctx, st, args); err != nil {
				return err
			}
			args = nil
		}
	}
	return note(ctx, st, args)
}

func note(ctx context.Context, st *store.Store, args []any) error {
	return rdb.Wrap("note the use of tokens", st.Partition().Run(ctx, scriptTokensUsed, args...).Err())
}

// Read returns when tokens were last used, as far as it is noted, which may be a minute late. It
// fails with [bus.ErrUnavailable].
func Read(ctx context.Context, st *store.Store) (map[bus.Token]time.Time, error) {
	noted, err := st.Partition().HGetAll(ctx, Keys{st.Partition().Namespace()}.Times()).Result()
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
