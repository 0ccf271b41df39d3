//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/jobs"
	"routemaster/client/machines"
	"routemaster/client/subscriber"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// openTerminal opens a terminal that takes the text written to keys as typed.
func openTerminal(t *testing.T) (keys io.Writer, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close(); _ = master.Close() })
	return master, terminal
}

// runOn runs a command with a standard input.
func runOn(t *testing.T, stdin io.Reader, args ...string) (stderr string, err error) {
	t.Helper()
	var text bytes.Buffer
	root := newRoot()
	root.SetIn(stdin)
	root.SetOut(io.Discard)
	root.SetErr(&text)
	root.SetArgs(args)
	_, err = root.ExecuteContextC(t.Context())
	return text.String(), err
}

// removal is a command that removes something.
type removal struct {
	command, token, says string
	// make makes the thing that the command removes, and is reports whether it exists.
	make func(t *testing.T)
	is   func(t *testing.T) bool
}

// removals are commands of each kind, for a bus without a worker.
func removals(t *testing.T, url string) []removal {
	connect := func(token string) *client.Client {
		c, err := client.New(url, token)
		require.NoError(t, err)
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	root, alice, bob := connect(webtest.RootKey), connect(webtest.Alice), connect(webtest.Bob)
	subscribe := func(t *testing.T) {
		_, err := root.AddToken(t.Context(), "alice", webtest.Alice)
		require.NoError(t, err)
		hour := time.Hour
		require.NoError(t, alice.Subscribe(t.Context(), client.Subscription{Topics: []string{"widgets"}, Callback: "https://x.example/", Timeout: &hour}))
		for range 3 {
			require.NoError(t, bob.Publish(t.Context(), client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/"}))
		}
	}
	subscribed := func(t *testing.T) bool {
		_, err := subscriber.Of(root, webtest.Alice).Info(t.Context())
		return err == nil
	}
	hasTopic := func(t *testing.T) bool {
		info, err := subscriber.Of(root, webtest.Alice).Info(t.Context())
		return err == nil && len(info.Topics) > 0
	}
	remember := func(t *testing.T) {
		subscribe(t)
		require.NoError(t, history.Of(bob, "widgets").Put(t.Context(), history.Limits{Events: 2}))
	}
	ships := jobs.New(bob)
	enqueue := func(t *testing.T) {
		_, err := ships.AddType(t.Context(), jobs.Type{Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 1})
		require.NoError(t, err)
		_, err = ships.Enqueue(t.Context(), "ship", jobs.NewJob{})
		require.NoError(t, err)
	}
	hasType := func(t *testing.T) bool {
		_, err := ships.Type(t.Context(), "ship")
		return err == nil
	}
	const feed, paused = "state_machines:\n  feed:\n    states:\n", "      - {gate: paused, exit_condition: false}\n"
	file := filepath.Join(t.TempDir(), "one.yaml")
	require.NoError(t, os.WriteFile(file, []byte(feed+paused), 0o600))
	apply := func(t *testing.T) {
		_, err := machines.Apply(t.Context(), root, []byte(feed+"      - {gate: waiting, exit_condition: false, next: paused}\n"+paused))
		require.NoError(t, err)
	}
	waits := func(t *testing.T) bool {
		feed, err := machines.Of(root, "feed").Show(t.Context())
		return err == nil && strings.Contains(string(feed.Definition), "waiting")
	}
	return []removal{
		{"token del " + webtest.Alice, webtest.RootKey, "with the token goes its subscription to 1 topic and \\d+ queued events", subscribe, subscribed},
		{"sub del", webtest.Alice, "with the subscriber goes its subscription to 1 topic and \\d+ queued events", subscribe, subscribed},
		{"job type del ship --force", webtest.Bob, "cancelled with the type: 1 job", enqueue, hasType},
		{"machine apply " + file, webtest.RootKey, "state feed.waiting goes, with 0 labels", apply, waits},
		{"topic del widgets", webtest.Bob, "with the topic goes 1 subscription", subscribe, hasTopic},
		{"topic del widgets", webtest.Bob, "with the topic goes its history of \\d+ events?, and 1 subscription", remember, hasTopic},
	}
}

// TestWhatRemovesSaysSoAndAsks removes things: on a terminal with the answers no, none and yes,
// then with --yes, and as a script.
func TestWhatRemovesSaysSoAndAsks(t *testing.T) {
	url := webtest.New(t, rdbtest.Embedded(t)).Run()
	for _, r := range removals(t, url) {
		for _, how := range []struct {
			answer, flag     string
			terminal, wanted bool
		}{{"n\n", "", true, false}, {"\n", "", true, false}, {"y\n", "", true, true}, {"", "--yes", true, true}, {"", "", false, true}} {
			if !r.is(t) {
				r.make(t)
			}
			var stdin io.Reader = strings.NewReader("")
			if how.terminal {
				keys, terminal := openTerminal(t)
				_, err := io.WriteString(keys, how.answer)
				require.NoError(t, err)
				stdin = terminal
			}
			said, err := runOn(t, stdin, strings.Fields(r.command+" "+how.flag+" -b "+url+" -t "+r.token)...)
			assert.Regexp(t, "^rtm: "+r.says+"\n", said, "%s %v", r.command, how)
			assert.Equal(t, how.answer != "", strings.Contains(said, "Go on? [y/N] "), "%s %v: %s", r.command, how, said)
			if how.wanted {
				assert.NoError(t, err, "%s %v", r.command, how)
			} else {
				assert.ErrorIs(t, err, errNotWanted, "%s %v", r.command, how)
			}
			assert.Equal(t, !how.wanted, r.is(t), "%s %v", r.command, how)
		}
	}
}

func TestApplyThatRemovesNothingDoesNotAsk(t *testing.T) {
	url := webtest.New(t, rdbtest.Embedded(t)).Run()
	_, terminal := openTerminal(t) // without input
	for _, says := range []string{"machine welcome is new, with 5 states", "no machine and no state is added or removed"} {
		said, err := runOn(t, terminal, "machine", "apply", welcome, "-b", url, "-t", webtest.RootKey)
		require.NoError(t, err, said)
		assert.Contains(t, said, "rtm: "+says+"\n")
	}
}
