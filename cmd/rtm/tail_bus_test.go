package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

// screen is an output that several goroutines write and read.
type screen struct{ rdbtest.Buffer }

func (s *screen) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), text) }, soon, time.Millisecond, "%q is missing", text)
}

// tailing is an rtm tail that runs in this process.
type tailing struct {
	stdout, stderr screen
	interrupt      context.CancelFunc
	exited         chan int
}

const tailStarted = "; Ctrl-C ends it\n"

// startTail starts an rtm tail, and waits until its streams have begun.
func startTail(t *testing.T, b *testBus, token string, args ...string) *tailing {
	t.Helper()
	r := launchTail(t, b, token, nil, args...)
	r.stderr.waitFor(t, tailStarted)
	return r
}

// launchTail starts an rtm tail that prints to a writer, if one is given. It is ended with the
// test.
func launchTail(t *testing.T, b *testBus, token string, out io.Writer, args ...string) *tailing {
	ctx, interrupt := context.WithCancel(context.Background())
	r := &tailing{interrupt: interrupt, exited: make(chan int, 1)}
	if out == nil {
		out = &r.stdout
	}
	var running sync.WaitGroup
	running.Go(func() {
		r.exited <- run(ctx, append([]string{"tail", "-b", b.url, "-t", token}, args...), out, &r.stderr)
	})
	t.Cleanup(func() {
		interrupt()
		running.Wait()
	})
	return r
}

// wait waits for the end, and returns the exit status.
func (r *tailing) wait(t *testing.T) int {
	t.Helper()
	select {
	case status := <-r.exited:
		return status
	case <-time.After(soon):
		require.FailNow(t, "it does not end", r.stderr.String())
		return -1
	}
}

// end is Ctrl-C.
func (r *tailing) end(t *testing.T) {
	t.Helper()
	r.interrupt()
	require.Equal(t, app.ExitOK, r.wait(t), r.stderr.String())
}

// tailBus is a bus with a topic widgets, and its publisher.
type tailBus struct {
	*testBus
	root, publisher *client.Client
}

func startTailBus(t *testing.T) *tailBus {
	t.Helper()
	b := &tailBus{testBus: startBus(t)}
	b.root, b.publisher = b.connect(t, rootKey), b.connect(t, b.addClient(t, "warehouse"))
	b.publish(t, 0)
	return b
}

// event is an event with a number.
func (b *tailBus) event(number int) client.Event {
	return client.Event{Topic: "widgets", Type: client.Update, URL: fmt.Sprintf("https://warehouse.example/widgets/%d", number)}
}

func (b *tailBus) publish(t *testing.T, number int) {
	t.Helper()
	require.NoError(t, b.publisher.Publish(t.Context(), b.event(number)))
}

func (b *tailBus) subscriptions(t *testing.T) []client.SubscriptionStatus {
	t.Helper()
	subscriptions, err := b.root.Subscriptions(t.Context())
	require.NoError(t, err)
	return subscriptions
}

// tailProcess starts an rtm tail as a process of its own, and waits until its streams have begun.
func tailProcess(t *testing.T, b *tailBus, token string, stdout io.Writer, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	command := exec.Command(filepath.Join(installRtm(t), "rtm"), append([]string{"tail", "-b", b.url, "-t", token}, args...)...)
	stderr := &screen{}
	command.Stdout, command.Stderr = stdout, stderr
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	stderr.waitFor(t, tailStarted)
	return command, stderr
}

// waitProcess requires that a process ends, with status 0.
func waitProcess(t *testing.T, command *exec.Cmd, stderr *screen) {
	t.Helper()
	hangs := time.AfterFunc(soon, func() { _ = command.Process.Kill() })
	defer hangs.Stop()
	require.NoError(t, command.Wait(), stderr)
}
