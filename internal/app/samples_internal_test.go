package app

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/overview"
	"routemaster/internal/web/rest"
)

func TestASampleThatPanicsDoesNotEndTheProcess(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	runSamples(ctx, func(context.Context) {
		if runs++; runs < 3 {
			panic("out of range")
		}
		cancel()
	}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Equal(t, 3, runs)
	assert.Equal(t, 2, bytes.Count(log.Bytes(), []byte(`panic="out of range"`)))
}

// TestRefusalsAreARateOfTheLastBeat counts answers for ten seconds, and then none.
func TestRefusalsAreARateOfTheLastBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := &rest.Refusals{}
		update := refusalsOf(refusals)
		refusals.Credentials.Add(75)
		refusals.Requests.Add(2)
		time.Sleep(10 * time.Second)
		var p overview.Process
		update(&p)
		assert.Equal(t, overview.Process{Refused: 7.5, Throttled: 0.2}, p)
		time.Sleep(10 * time.Second)
		update(&p)
		assert.Equal(t, overview.Process{}, p)
	})
}
