package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// requireNoOptions fails on the way back while subscribers have options or signing secrets: the
// original would deliver to them as if they had none.
func (r *run) requireNoOptions(ctx context.Context) error {
	if !r.Back {
		return nil
	}
	var tokens []string
	err := r.redis.EachKey(ctx, r.keys.Options("")+"*", func(page []string) error {
		some, err := r.withOptions(ctx, page)
		tokens = append(tokens, some...)
		return err
	})
	if err != nil || len(tokens) == 0 {
		return rdb.Wrap("list options", err)
	}
	names, err := r.names(ctx)
	if err != nil {
		return err
	}
	for i, token := range tokens {
		tokens[i] = string(bus.PublicName(bus.Token(token), bus.ClientName(names[token])))
	}
	slices.Sort(tokens)
	return fmt.Errorf("these subscribers have options or secrets, which the original knows nothing of: %s; "+
		"have them removed first", strings.Join(slices.Compact(tokens), ", "))
}

// withOptions returns the tokens of keys with fields other than plan. A key of another type counts.
func (r *run) withOptions(ctx context.Context, keys []string) (tokens []string, err error) {
	fields := make([]rdb.Reply[[]string], len(keys))
	err = r.redis.Reads(ctx, "list options", func(pipe rdb.Commands) {
		for i, key := range keys {
			fields[i] = pipe.HKeys(ctx, key)
		}
	})
	for i, key := range keys {
		isMore := func(field string) bool { return field != "plan" }
		if fields[i].Err() != nil || slices.ContainsFunc(fields[i].Val(), isMore) {
			tokens = append(tokens, strings.TrimPrefix(key, r.keys.Options("")))
		}
	}
	return tokens, err
}
