// Package storetest opens a store on a test's own Redis, and requires that what is in it is sound.
package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// Open opens a store on a server. It is closed with the test.
func Open(t testing.TB, server *rdbtest.Server, adjust ...func(*store.Options)) *store.Store {
	var options store.Options
	for _, f := range adjust {
		f(&options)
	}
	return store.New(server.Open(t).Partition(""), options)
}

// RequireSound fails the test unless the data layout's invariants hold.
func RequireSound(t testing.TB, st *store.Store) {
	t.Helper()
	violations, err := st.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, violations)
}
