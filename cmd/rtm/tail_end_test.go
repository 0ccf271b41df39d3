package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

func TestTailEndsOnSignalsAndWhenNobodyReads(t *testing.T) {
	b := startTailBus(t)
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		command, stderr := tailProcess(t, b, rootKey, io.Discard, "widgets")
		require.NoError(t, command.Process.Signal(signal))
		waitProcess(t, command, stderr)
		assert.Contains(t, stderr.String(), "rtm: unsubscribed; events: 0\n")
		b.requireNothingLeft(t)
	}
	for _, token := range []string{rootKey, b.addClient(t, "xshop")} {
		reading, writing, err := os.Pipe()
		require.NoError(t, err)
		command, stderr := tailProcess(t, b, token, writing, "widgets")
		require.NoError(t, writing.Close())
		b.publish(t, 1)
		line := make([]byte, 200)
		n, err := reading.Read(line)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(string(line[:n]), "widgets/1\n"))
		require.NoError(t, reading.Close()) // as head -1 does
		waitProcess(t, command, stderr)
		assert.Contains(t, stderr.String(), "rtm: unsubscribed; events: 1\n")
		require.Empty(t, b.subscriptions(t))
		require.Empty(t, b.noteFiles(t))
	}
}

func TestASecondCtrlCEndsATailAtOnce(t *testing.T) {
	b := startTailBus(t)
	b.url = b.front(t, func(w http.ResponseWriter, r *http.Request, toBus http.Handler) {
		if r.Method == http.MethodDelete { // it unsubscribes
			hang(w, r)
		}
		toBus.ServeHTTP(w, r)
	})
	command, _ := tailProcess(t, b, rootKey, io.Discard, "widgets")
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	interrupting := time.NewTicker(50 * time.Millisecond)
	defer interrupting.Stop()
	for {
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: interrupt", "it has not waited for the time-out of unsubscribing, and failed")
			require.Len(t, b.noteFiles(t), 1)
			return
		case <-interrupting.C:
			_ = command.Process.Signal(os.Interrupt)
		}
	}
}

func TestTailAcknowledgesWhatIsPrinted(t *testing.T) {
	b := startTailBus(t)
	reading, writing := io.Pipe()
	r := launchTail(t, b.testBus, rootKey, writing, "widgets", "--json")
	r.stderr.waitFor(t, tailStarted)
	b.publish(t, 1)
	first := make([]byte, 1)
	_, err := io.ReadFull(reading, first)
	require.NoError(t, err)
	assert.Zero(t, b.subscriptions(t)[0].Sent, "half a line is not printed")
	go func() { _, _ = io.Copy(io.Discard, reading) }()
	require.Eventually(t, func() bool { return b.subscriptions(t)[0].Sent == 1 }, soon, 10*time.Millisecond)
	r.interrupt()
	assert.Equal(t, app.ExitOK, r.wait(t))
	require.NoError(t, writing.Close())
	b.requireNothingLeft(t)

	// One that is closed ends it.
	reading, writing = io.Pipe()
	r = launchTail(t, b.testBus, rootKey, writing, "widgets")
	r.stderr.waitFor(t, tailStarted)
	require.NoError(t, reading.Close())
	b.publish(t, 2)
	assert.Equal(t, app.ExitOK, r.wait(t), r.stderr.String())
	b.requireNothingLeft(t)

	// An output that fails ends it as a failure.
	r = launchTail(t, b.testBus, rootKey, fullDisk{}, "widgets")
	r.stderr.waitFor(t, tailStarted)
	b.publish(t, 2)
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: no space left on device\n")
	b.requireNothingLeft(t)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTailWhenTheBusIsAwayAtTheEnd(t *testing.T) {
	b := startTailBus(t)
	listener, err := net.Listen("tcp", rdbtest.FreeAddress(t))
	require.NoError(t, err)
	web := func(listener net.Listener) (stop func()) {
		return runDaemon(t, func(ctx context.Context, log *slog.Logger) error { return app.ServeWeb(ctx, b.config, log, listener) })
	}
	stop := web(listener)
	b.url = "http://" + listener.Addr().String()
	r := startTail(t, b.testBus, rootKey, "widgets")
	stop()
	r.interrupt()
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "could not unsubscribe: ")
	assert.Contains(t, r.stderr.String(), "the next tail for this bus does it")
	assert.NotContains(t, r.stderr.String(), rootKey)
	require.Len(t, b.noteFiles(t), 1)
	require.Len(t, b.subscriptions(t), 1)

	listener, err = net.Listen("tcp", listener.Addr().String())
	require.NoError(t, err)
	web(listener)
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	b.requireNothingLeft(t)
}
