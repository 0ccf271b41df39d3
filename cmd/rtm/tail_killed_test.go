package main

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
)

func TestTheNextTailRemovesWhatAKilledOneLeft(t *testing.T) {
	b := startTailBus(t)
	shop, other := b.addClient(t, "xshop"), b.addClient(t, "yother")
	left := func(clients, subscriptions, notes int) {
		t.Helper()
		require.Len(t, b.tokens(t), 3+clients)
		require.Len(t, b.subscriptions(t), subscriptions)
		require.Len(t, b.noteFiles(t), notes)
	}
	runs := startTail(t, b.testBus, rootKey, "widgets") // throughout: it is not touched
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

	// With a client's token the subscription of a client made with the root key goes, and with the
	// root key the client.
	killed, _ := tailProcess(t, b, rootKey, io.Discard, "widgets")
	kill(t, killed)
	left(2, 2, 2)
	rerun := startTail(t, b.testBus, shop, "widgets")
	assert.Contains(t, rerun.stderr.String(), "that needs the root key, or the token that the tail had")
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

	// A service that has subscribed with that token since then is not touched.
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

	// One of another host is reported, not touched.
	notes := os.Getenv("XDG_STATE_HOME")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	stranger := startTail(t, b.testBus, rootKey, "widgets")
	assert.Contains(t, stranger.stderr.String(), "clients of tails that run on other hosts, or were left there: rtm-tail-")
	stranger.end(t)
	elsewhere := startTail(t, b.testBus, shop, "widgets")
	t.Setenv("XDG_STATE_HOME", notes)
	refused = launchTail(t, b.testBus, shop, nil, "widgets")
	assert.Equal(t, app.ExitFailed, refused.wait(t))
	assert.Contains(t, refused.stderr.String(), "another tail has subscribed with this token on another host")
	elsewhere.end(t)
	left(1, 1, 1)
}

// TestATailCanBeKilledAtAnyMoment kills tails from before they talk to the bus until after they
// have subscribed.
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
