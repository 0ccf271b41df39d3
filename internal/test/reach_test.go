package test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/store/storetest"
)

// TestWebSaysAtStartThatRedisIsAway sends no request.
func TestWebSaysAtStartThatRedisIsAway(t *testing.T) {
	config := loadConfig(t, map[string]string{"ROUTEMASTER_ROOT_KEY": rootKey, "ROUTEMASTER_REDIS_URL": "redis://" + storetest.FreeAddress(t)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var logged storetest.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- app.ServeWeb(ctx, config, slog.New(slog.NewTextHandler(&logged, nil)), listener) }()
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "level=ERROR msg=\"redis") }, soon, time.Millisecond)
	stop()
	assert.NoError(t, <-ran)
}
