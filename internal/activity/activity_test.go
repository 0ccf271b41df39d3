package activity_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/activity"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func TestTheLastChangesAreKept(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		var logged bytes.Buffer
		l := activity.New(server.Open(t).Partition("ns:"), slog.New(slog.NewTextHandler(&logged, nil)))
		stopped, stop := context.WithCancel(t.Context())
		stop()
		for i := range 600 {
			l.Note(activity.Change{RequestID: fmt.Sprint(i)})
			if i%200 == 199 {
				l.Run(stopped) // it stores what waits
			}
		}
		assert.Empty(t, logged.String())
		changes, err := l.Last(t.Context(), 1000)
		require.NoError(t, err)
		require.Len(t, changes, 500)
		assert.Equal(t, "599", changes[0].RequestID)
		assert.Equal(t, "100", changes[499].RequestID)

		for i := range 300 {
			l.Note(activity.Change{RequestID: fmt.Sprint(i)})
		}
		assert.Contains(t, logged.String(), "request_id=256", "nobody waits for Redis")
		assert.NotContains(t, logged.String(), "request_id=255")
	})
}

func TestLongFieldsAreCut(t *testing.T) {
	redis := rdbtest.Embedded(t)
	l := activity.New(redis.Open(t).Partition(""), slog.New(slog.DiscardHandler))
	l.Note(activity.Change{Fields: map[string]string{
		"short": strings.Repeat("x", 256), "long": strings.Repeat("x", 100_000), "cut within a rune": "x" + strings.Repeat("é", 200),
	}})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	l.Run(stopped)
	changes, err := l.Last(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"short": strings.Repeat("x", 256), "long": strings.Repeat("x", 256) + "…", "cut within a rune": "x" + strings.Repeat("é", 127) + "…",
	}, changes[0].Fields)
}

func TestPerson(t *testing.T) {
	_, inConsole := activity.Person(t.Context())
	assert.False(t, inConsole)
	person, inConsole := activity.Person(activity.InConsole(t.Context(), ""))
	assert.True(t, inConsole)
	assert.Empty(t, person)
}
