package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

func TestTailEndsOnSignalsAndWhenNobodyReads(t *testing.T) {
	b := startTailBus(t)
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		command, stderr := tailProcess(t, b, rootKey, io.Discard, "widgets")
		require.NoError(t, command.Process.Signal(signal))
		waitProcess(t, command, stderr)
		assert.Contains(t, stderr.String(), "rtm: ended; events: 0\n")
	}
	reading, writing, err := os.Pipe()
	require.NoError(t, err)
	command, stderr := tailProcess(t, b, rootKey, writing, "widgets")
	require.NoError(t, writing.Close())
	b.publish(t, 1)
	line := make([]byte, 200)
	n, err := reading.Read(line)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(line[:n]), "widgets/1\n"))
	require.NoError(t, reading.Close()) // as head -1 does
	waitProcess(t, command, stderr)
	assert.Contains(t, stderr.String(), "rtm: ended; events: 1\n")
}

// TestASecondCtrlCEndsATailAtOnce presses Ctrl-C while a command runs for hours.
func TestASecondCtrlCEndsATailAtOnce(t *testing.T) {
	b := startTailBus(t)
	started := filepath.Join(t.TempDir(), "pid")
	t.Setenv("STARTED", started)
	command, _ := tailProcess(t, b, rootKey, io.Discard, "widgets", "--exec-timeout", "3h", "--exec", `echo $$ >"$STARTED.new"; mv "$STARTED.new" "$STARTED"; exec sleep 10000 >/dev/null 2>&1`) // or it holds the output open
	b.publish(t, 1)
	require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, soon, time.Millisecond)
	text, err := os.ReadFile(started)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	interrupting := time.NewTicker(50 * time.Millisecond)
	defer interrupting.Stop()
	for {
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: interrupt", "it has not waited for the command")
			return
		case <-interrupting.C:
			_ = command.Process.Signal(os.Interrupt)
		}
	}
}

func TestTailWhoseOutputIsNotRead(t *testing.T) {
	b := startTailBus(t)
	reading, writing := io.Pipe()
	r := launchTail(t, b.testBus, rootKey, writing, "widgets")
	r.stderr.waitFor(t, tailStarted)
	b.publish(t, 1)
	_, err := io.ReadFull(reading, make([]byte, 1)) // it is in the middle of a line
	require.NoError(t, err)
	r.end(t)
	assert.Contains(t, r.stderr.String(), "rtm: ended; events: 0\n", "half a line is not shown")
	require.NoError(t, reading.Close())

	// One that is closed ends it.
	reading, writing = io.Pipe()
	r = launchTail(t, b.testBus, rootKey, writing, "widgets")
	r.stderr.waitFor(t, tailStarted)
	require.NoError(t, reading.Close())
	b.publish(t, 2)
	assert.Equal(t, app.ExitOK, r.wait(t), r.stderr.String())

	// An output that fails ends it as a failure.
	r = launchTail(t, b.testBus, rootKey, fullDisk{}, "widgets")
	r.stderr.waitFor(t, tailStarted)
	b.publish(t, 3)
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: no space left on device\n")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
