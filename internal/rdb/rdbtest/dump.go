package rdbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
)

// Dump is all of Redis: key to type and value. It takes three round trips, however many keys there
// are.
func Dump(t testing.TB, raw rdb.Commands) map[string]string {
	t.Helper()
	ctx := context.Background()
	keys, err := raw.Keys(ctx, "*").Result()
	require.NoError(t, err)
	types := make([]*redis.StatusCmd, len(keys))
	_, err = raw.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			types[i] = pipe.Type(ctx, key)
		}
		return nil
	})
	require.NoError(t, err)
	values := make([]func() any, len(keys))
	_, err = raw.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			values[i] = read(ctx, pipe, types[i].Val(), key)
		}
		return nil
	})
	if !errors.Is(err, redis.Nil) { // a string has expired meanwhile
		require.NoError(t, err)
	}
	all := map[string]string{}
	for i, key := range keys {
		all[key] = fmt.Sprintf("%s %q", types[i].Val(), values[i]())
	}
	return all
}

// read has a pipeline read a key of a type. Its value is there once that has run.
func read(ctx context.Context, pipe redis.Pipeliner, kind, key string) (value func() any) {
	switch kind {
	case "string":
		reply := pipe.Get(ctx, key)
		return func() any { return reply.Val() }
	case "hash":
		reply := pipe.HGetAll(ctx, key)
		return func() any { return reply.Val() }
	case "set":
		reply := pipe.SMembers(ctx, key)
		return func() any { return slices.Sorted(slices.Values(reply.Val())) }
	case "zset":
		reply := pipe.ZRangeWithScores(ctx, key, 0, -1)
		return func() any {
			scores := map[string]string{}
			for _, z := range reply.Val() {
				scores[z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', -1, 64)
			}
			return scores
		}
	case "list":
		reply := pipe.LRange(ctx, key, 0, -1)
		return func() any { return reply.Val() }
	}
	return func() any { return nil }
}
