package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// startTail starts an rtm tail, and waits until it has subscribed.
func startTail(t *testing.T, b *testBus, token string, args ...string) *tailing {
	t.Helper()
	r := launchTail(t, b, token, nil, args...)
	r.stderr.waitFor(t, tailStarted)
	return r
}

// launchTail starts an rtm tail that prints to a writer, if one is given. It is ended with the test.
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

// tailBus is a bus with a topic widgets, its publisher, and a place of its own for the notes of tails.
type tailBus struct {
	*testBus
	root, publisher *client.Client
	notes           string
}

func startTailBus(t *testing.T, adjust ...func(*app.Config)) *tailBus {
	t.Helper()
	b := &tailBus{testBus: startBus(t, adjust...)}
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	b.notes = filepath.Join(state, "routemaster", "tail")
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

// tokens are the names of the bus's clients.
func (b *tailBus) tokens(t *testing.T) (names []string) {
	t.Helper()
	tokens, err := b.root.Tokens(t.Context())
	require.NoError(t, err)
	for _, token := range tokens {
		names = append(names, token.Name)
	}
	return names
}

func (b *tailBus) subscriptions(t *testing.T) []client.SubscriptionStatus {
	t.Helper()
	subscriptions, err := b.root.Subscriptions(t.Context())
	require.NoError(t, err)
	return subscriptions
}

// noteFiles are the notes of tails.
func (b *tailBus) noteFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.notes, "*.json"))
	require.NoError(t, err)
	return paths
}

// requireNothingLeft requires that tails have left nothing, neither on the bus nor here.
func (b *tailBus) requireNothingLeft(t *testing.T, names ...string) {
	t.Helper()
	require.Empty(t, b.subscriptions(t))
	require.Equal(t, append([]string{"warehouse"}, names...), b.tokens(t))
	require.Empty(t, b.noteFiles(t))
}

func TestTailShowsEventsAtOnce(t *testing.T) {
	b := startTailBus(t)
	r := startTail(t, b.testBus, rootKey, "widgets")
	const tries = 20
	took := time.Hour
	for number := 1; took >= time.Second && number <= tries; number++ { // a machine that stalls does not do so every time
		published := time.Now()
		b.publish(t, number)
		r.stdout.waitFor(t, fmt.Sprintf("widgets/%d\n", number))
		took = time.Since(published)
	}
	assert.Less(t, took, time.Second)
	r.end(t)
	b.requireNothingLeft(t)
}

func TestTailShowsEvents(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	for _, token := range []string{rootKey, shop} {
		people := startTail(t, b.testBus, token, "widgets")
		at := time.UnixMilli(1_700_000_000_123)
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Delete, URL: "https://warehouse.example/widgets/7", Timestamp: at, Data: json.RawMessage(`{"to":"<a&b>"}`),
		}))
		people.stdout.waitFor(t, "\n")
		assert.Equal(t, at.Format("2006-01-02 15:04:05.000")+` widgets delete https://warehouse.example/widgets/7 {"to":"<a&b>"}`+"\n", people.stdout.String())
		assert.NotContains(t, people.stdout.String(), "/0", "only what was published since")
		people.end(t)
		assert.Equal(t, "rtm: showing what is published to widgets from now on; Ctrl-C ends it\nrtm: unsubscribed; events: 1\n", people.stderr.String())
		b.requireNothingLeft(t, "xshop")

		machines := startTail(t, b.testBus, token, "widgets", "--json", "--latency", "200", "--batch-size", "7")
		sub := b.subscriptions(t)[0]
		assert.Equal(t, 200*time.Millisecond, sub.Timeout)
		assert.Equal(t, 7, sub.Max)
		require.NoError(t, b.publisher.Publish(t.Context(), client.Event{
			Topic: "widgets", Type: client.Create, URL: "https://warehouse.example/widgets/8", Timestamp: at, Data: json.RawMessage("\"\u009b31m\U000e0001\""),
		}))
		machines.stdout.waitFor(t, "\n")
		assert.Equal(t, `{"topic":"widgets","type":"create","url":"https://warehouse.example/widgets/8","t":1700000000123,"data":"\u009b31m\udb40\udc01"}`+"\n",
			machines.stdout.String(), "what a terminal would act on is escaped")
		var event client.Event
		require.NoError(t, json.Unmarshal([]byte(machines.stdout.String()), &event))
		machines.end(t)
		b.requireNothingLeft(t, "xshop")
	}
}

func TestTwoTailsWithTheRootKeyAndOneWithAClients(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	first, second, clients := startTail(t, b.testBus, rootKey, "widgets"), startTail(t, b.testBus, rootKey, "widgets"), startTail(t, b.testBus, shop, "widgets")
	assert.Len(t, b.noteFiles(t), 3)
	for _, path := range b.noteFiles(t) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotContains(t, string(text), rootKey)
		assert.NotContains(t, path+string(text), shop)
	}
	b.publish(t, 1)
	for _, r := range []*tailing{first, second, clients} {
		r.stdout.waitFor(t, "widgets/1\n")
	}
	first.end(t)
	b.publish(t, 2)
	second.stdout.waitFor(t, "widgets/2\n")
	clients.stdout.waitFor(t, "widgets/2\n")

	again := launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, again.wait(t))
	assert.Contains(t, again.stderr.String(), "another rtm tail with this token runs on this machine")
	b.publish(t, 3)
	clients.stdout.waitFor(t, "widgets/3\n")
	second.end(t)
	clients.end(t)
	b.requireNothingLeft(t, "xshop")
}

func TestTailNeverReplacesASubscription(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "shop")
	production := client.Subscription{Topics: []string{"widgets"}, Callback: "https://shop.invalid/events", UUID: "production"}
	own := b.connect(t, shop)
	require.NoError(t, own.Subscribe(t.Context(), production))
	before := b.subscriptions(t)

	r := launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "rtm: this client has a subscription already, to widgets, which tail would replace: use the root key")
	assert.NotContains(t, r.stderr.String(), shop)
	assert.Equal(t, before, b.subscriptions(t))
	assert.Empty(t, b.noteFiles(t))

	// Without a uuid it is one too.
	require.NoError(t, own.UnsubscribeAll(t.Context()))
	require.NoError(t, own.Subscribe(t.Context(), client.Subscription{Topics: []string{}, Callback: production.Callback}))
	r = launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "to no topic, which tail would replace")
	require.NoError(t, own.UnsubscribeAll(t.Context()))

	// The service starts while a tail runs with its token: the tail sees it, and leaves it alone.
	r = startTail(t, b.testBus, shop, "widgets")
	require.NoError(t, own.Subscribe(t.Context(), production))
	assert.Equal(t, app.ExitFailed, r.wait(t))
	assert.Contains(t, r.stderr.String(), "somebody else has removed it, or subscribed with this token")
	require.Len(t, b.subscriptions(t), 1)
	assert.Equal(t, "production", b.subscriptions(t)[0].UUID)

	// Or just before Ctrl-C.
	require.NoError(t, own.UnsubscribeAll(t.Context()))
	r = startTail(t, b.testBus, shop, "widgets")
	require.NoError(t, own.Subscribe(t.Context(), production))
	r.interrupt()
	r.wait(t)
	require.Len(t, b.subscriptions(t), 1)
	assert.Equal(t, "production", b.subscriptions(t)[0].UUID)
	assert.Empty(t, b.noteFiles(t))
}

// tailProcess starts an rtm tail as a process of its own, and waits until it has subscribed.
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

func kill(t *testing.T, command *exec.Cmd) {
	t.Helper()
	require.NoError(t, command.Process.Kill())
	_ = command.Wait()
}

func TestTheNextTailRemovesWhatAKilledOneLeft(t *testing.T) {
	b := startTailBus(t)
	shop, other := b.addClient(t, "xshop"), b.addClient(t, "yother")
	left := func(clients, subscriptions, notes int) {
		t.Helper()
		require.Len(t, b.tokens(t), 3+clients)
		require.Len(t, b.subscriptions(t), subscriptions)
		require.Len(t, b.noteFiles(t), notes)
	}
	runs := startTail(t, b.testBus, rootKey, "widgets") // throughout: it is let alone
	defer runs.end(t)

	for _, token := range []string{rootKey, shop} {
		killed, _ := tailProcess(t, b, token, io.Discard, "widgets")
		kill(t, killed)
		rerun := startTail(t, b.testBus, token, "widgets")
		b.publish(t, 1)
		rerun.stdout.waitFor(t, "widgets/1\n")
		rerun.end(t)
		left(1, 1, 1)
	}

	// With a client's token the subscription of a client made with the root key goes, and with the root key the client.
	killed, _ := tailProcess(t, b, rootKey, io.Discard, "widgets")
	kill(t, killed)
	left(2, 2, 2)
	rerun := startTail(t, b.testBus, shop, "widgets")
	assert.Contains(t, rerun.stderr.String(), "the root key, or the token that it was run with, is needed")
	left(2, 2, 3)
	rerun.end(t)
	left(2, 1, 2)
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	left(1, 1, 1)

	// Root removes what a tail left under a client's token; another client cannot.
	killed, _ = tailProcess(t, b, shop, io.Discard, "widgets")
	kill(t, killed)
	startTail(t, b.testBus, other, "widgets").end(t)
	left(1, 2, 2)
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	left(1, 1, 1)

	// A service that has subscribed since with that token is let alone.
	killed, _ = tailProcess(t, b, shop, io.Discard, "widgets")
	kill(t, killed)
	require.NoError(t, b.connect(t, shop).Subscribe(t.Context(), client.Subscription{
		Topics: []string{"widgets"}, Callback: "https://shop.invalid/events", UUID: "production",
	}))
	refused := launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, refused.wait(t))
	assert.Contains(t, refused.stderr.String(), "a subscription already")
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	left(1, 2, 1)
	require.NoError(t, b.connect(t, shop).UnsubscribeAll(t.Context()))

	// One of another machine is told, not touched.
	notes := os.Getenv("XDG_STATE_HOME")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	stranger := startTail(t, b.testBus, rootKey, "widgets")
	assert.Contains(t, stranger.stderr.String(), "there are clients of tails that this machine does not know, running elsewhere or left there: rtm-tail-")
	stranger.end(t)
	elsewhere := startTail(t, b.testBus, shop, "widgets")
	t.Setenv("XDG_STATE_HOME", notes)
	refused = launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, refused.wait(t))
	assert.Contains(t, refused.stderr.String(), "another rtm tail has subscribed with this token on another machine")
	elsewhere.end(t)
	left(1, 1, 1)
}

// waitProcess requires that a process ends, with status 0.
func waitProcess(t *testing.T, command *exec.Cmd, stderr *screen) {
	t.Helper()
	hangs := time.AfterFunc(soon, func() { _ = command.Process.Kill() })
	defer hangs.Stop()
	require.NoError(t, command.Wait(), stderr)
}

// TestATailCanBeKilledAtAnyMoment kills tails from before they talk to the bus until after they have subscribed.
func TestATailCanBeKilledAtAnyMoment(t *testing.T) {
	b := startTailBus(t)
	shop := b.addClient(t, "xshop")
	rtm := filepath.Join(installRtm(t), "rtm")
	left := 0
	for i := range 24 {
		token := []string{rootKey, shop}[i%2]
		command := exec.Command(rtm, "tail", "widgets", "-b", b.url, "-t", token)
		require.NoError(t, command.Start())
		time.Sleep(rand.N(120 * time.Millisecond))
		kill(t, command)
		left += len(b.subscriptions(t))
	}
	t.Logf("subscriptions seen after the kills: %d", left)
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	b.requireNothingLeft(t, "xshop")
	startTail(t, b.testBus, shop, "widgets").end(t)
	b.requireNothingLeft(t, "xshop")
}

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
	command, _ := tailProcess(t, b, rootKey, io.Discard, "widgets")
	b.redis.Freeze(t)
	defer b.redis.Thaw(t)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	interrupting := time.NewTicker(50 * time.Millisecond)
	defer interrupting.Stop()
	for began := time.Now(); ; {
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: interrupt")
			assert.Less(t, time.Since(began), unsubscribeTimeout/2)
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
	assert.Contains(t, r.stderr.String(), "the next rtm tail for this bus will")
	assert.NotContains(t, r.stderr.String(), rootKey)
	require.Len(t, b.noteFiles(t), 1)
	require.Len(t, b.subscriptions(t), 1)

	listener, err = net.Listen("tcp", listener.Addr().String())
	require.NoError(t, err)
	web(listener)
	startTail(t, b.testBus, rootKey, "widgets").end(t)
	b.requireNothingLeft(t)
}
