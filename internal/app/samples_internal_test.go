package app

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
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
