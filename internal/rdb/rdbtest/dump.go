package rdbtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
)

// Dump is all of Redis: key to type and value.
func Dump(t testing.TB, raw rdb.Commands) map[string]string {
	t.Helper()
	ctx := context.Background()
	keys, err := raw.Keys(ctx, "*").Result()
	require.NoError(t, err)
	all := map[string]string{}
	for _, key := range keys {
		kind := raw.Type(ctx, key).Val()
		var value any
		switch kind {
		case "string":
			value = raw.Get(ctx, key).Val()
		case "hash":
			value = raw.HGetAll(ctx, key).Val()
		case "set":
			members := raw.SMembers(ctx, key).Val()
			slices.Sort(members)
			value = members
		case "zset":
			scores := map[string]string{}
			for _, z := range raw.ZRangeWithScores(ctx, key, 0, -1).Val() {
				scores[z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', -1, 64)
			}
			value = scores
		case "list":
			value = raw.LRange(ctx, key, 0, -1).Val()
		}
		all[key] = fmt.Sprintf("%s %q", kind, value)
	}
	return all
}
