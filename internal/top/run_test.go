package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBus is busy, unless it fails. In the first answer it has no rates, nor in more that are the
// same.
type fakeBus struct {
	mu    sync.Mutex
	same  int
	reads int
	err   error
}

func (b *fakeBus) Read(ctx context.Context) (overview.Figures, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	switch {
	case ctx.Err() != nil:
		return overview.Figures{}, ctx.Err()
	case b.err != nil:
		return overview.Figures{}, b.err
	case b.reads <= 1+b.same:
		before, _ := busy()
		return figuresOf(before), nil
	}
	f := withAll()
	f.Problems = problems
	return f, nil
}

func (b *fakeBus) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func TestOnce(t *testing.T) {
	bus := &fakeBus{same: 1}
	options := Options{Bus: "https://bus.example", Interval: MinInterval}
	var out bytes.Buffer
	require.NoError(t, Once(t.Context(), bus, options, &out, false))
	assert.Equal(t, 3, bus.reads, "until there are rates")
	for _, text := range []string{"https://bus.example   20", "queued 77,345", "due 3   instant/scheduled: main 2/772", "SUBSCRIBERS 4", "shop   ", "widgets ", " warehouse\n", "JOB TYPES 2", "50 of 50", "MACHINES 2", "machines 4/1,500", "! There are dead letters."} {
		assert.Contains(t, out.String(), text)
	}
	assert.NotContains(t, out.String(), "\x1b")

	out.Reset()
	options.Filter = "shop"
	require.NoError(t, Once(t.Context(), bus, options, &out, true))
	assert.Equal(t, 4, bus.reads, "there are rates")
	var figures overview.Figures
	require.NoError(t, json.Unmarshal(out.Bytes(), &figures))
	assert.Equal(t, problems, figures.Problems)
	assert.Equal(t, "shop", figures.Subscribers[0].Name)
	assert.Equal(t, known(1200), figures.Subscribers[0].Rate)
	assert.Empty(t, figures.Topics, "the filter is for all")
	assert.Empty(t, figures.JobTypes)
	assert.Contains(t, out.String(), `"job_types":[],"machines":[]`)
	assert.Contains(t, out.String(), `"clients":[]`)

	bus.fail(errors.New("503 Service Unavailable"))
	require.ErrorContains(t, Once(t.Context(), bus, options, io.Discard, false), "503")
	bus = &fakeBus{}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, Once(stopped, bus, options, io.Discard, false), context.Canceled)
}

func TestWatch(t *testing.T) {
	for _, quit := range []string{"the key", "the context"} {
		bus := &fakeBus{}
		ctx, stop := context.WithCancel(t.Context())
		keys, typing := io.Pipe()
		var terminal rdbtest.Buffer
		ended := make(chan error, 1)
		go func() {
			ended <- Watch(ctx, bus, Options{Bus: "https://bus.example", Interval: MinInterval},
				tea.WithInput(keys), tea.WithOutput(&terminal), tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm", "NO_COLOR=1"}))
		}()
		require.Eventually(t, func() bool { return strings.Contains(terminal.String(), "shop") }, time.Minute, time.Millisecond)
		assert.False(t, strings.Contains(terminal.String(), "\x1b[31m"), "no colour")
		bus.fail(errors.New("503 Service Unavailable"))
		require.Eventually(t, func() bool { return strings.Contains(terminal.String(), "503 Service Unavailable") }, time.Minute, time.Millisecond)
		if quit == "the key" {
			_, err := typing.Write([]byte("q"))
			require.NoError(t, err)
		} else {
			stop()
		}
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
		stop()
		require.NoError(t, typing.Close())
	}
}
