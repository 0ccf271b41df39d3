package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestOptionsAreRead(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		record, err := f.Options(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Equal(t, store.OptionsRecord{}, record)

		f.Redis.HSet(ctx, "options:alice--1", "plan", "abcdefgh", "secrets", "[1]", "partial", "true", "max_bytes", "x")
		record, err = f.Options(ctx, storetest.Alice)
		require.NoError(t, err)
		require.Error(t, record.Unreadable)
		record.Unreadable = nil
		assert.Equal(t, store.OptionsRecord{Plan: "abcdefgh", Secrets: "[1]", Options: bus.Options{Partial: true}}, record)

		f.Redis.Del(ctx, "options:alice--1")
		f.Redis.Set(ctx, "options:alice--1", "x", 0)
		_, err = f.Options(ctx, storetest.Alice)
		require.ErrorContains(t, err, "WRONGTYPE", "it may have secrets: nothing may be delivered without")
	})
}
