package delivery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

func TestAPlanIsReadOnceForEachVersion(t *testing.T) {
	var log bytes.Buffer
	var fails error
	reads, record := 0, store.OptionsRecord{Version: "one", Options: bus.Options{MaxBytes: 2000}, Unreadable: errors.New("partial is damaged")}
	p := optionsCache{log: slog.New(slog.NewTextHandler(&log, nil)), read: func(context.Context, bus.Token) (store.OptionsRecord, error) {
		reads++
		return record, fails
	}}
	of := func(version string) *compiledOptions {
		found, err := p.of(t.Context(), &store.Delivery{Subscriber: "alice--1", Basis: &store.Basis{Version: version}})
		require.NoError(t, err)
		return found
	}
	for range 3 {
		assert.Equal(t, 2000, of("one").options.MaxBytes)
	}
	assert.Equal(t, 1, reads)
	assert.Equal(t, 1, strings.Count(log.String(), "partial is damaged"), log.String())

	record = store.OptionsRecord{} // the options have gone since the batch was taken
	for range 3 {
		assert.Zero(t, of("two").options)
	}
	assert.Equal(t, 2, reads)

	fails = bus.ErrUnavailable
	_, err := p.of(t.Context(), &store.Delivery{Subscriber: "alice--1", Basis: &store.Basis{Version: "three"}})
	require.ErrorIs(t, err, bus.ErrUnavailable)
	found, err := p.of(t.Context(), &store.Delivery{Subscriber: "bob--2"})
	require.NoError(t, err)
	assert.Same(t, noOptions, found)
}
