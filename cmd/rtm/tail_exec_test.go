package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

func TestTailRunsACommandForEachEvent(t *testing.T) {
	b := startTailBus(t)
	t.Setenv("SEEN", filepath.Join(t.TempDir(), "seen"))
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec",
		`cat; echo "$RTM_TOPIC $RTM_TYPE $RTM_URL $RTM_TIMESTAMP"; case $RTM_URL in *2) exit 3;; esac; echo $RTM_URL >>"$SEEN"`)
	for number := range 5 {
		event := b.event(number)
		event.Timestamp = time.UnixMilli(1_700_000_000_000 + int64(number))
		event.Data = json.RawMessage(`{"it":"'; exit 1 #"}`)
		require.NoError(t, b.publisher.Publish(t.Context(), event))
	}
	r.stdout.waitFor(t, "\nwidgets update https://warehouse.example/widgets/4 1700000000004\n")
	r.end(t)
	seen, err := os.ReadFile(os.Getenv("SEEN"))
	require.NoError(t, err)
	assert.Equal(t, "0 1 3 4", strings.Join(strings.Fields(strings.ReplaceAll(string(seen), "https://warehouse.example/widgets/", "")), " "), "in order")
	assert.Contains(t, r.stdout.String(), `{"topic":"widgets","type":"update","url":"https://warehouse.example/widgets/0","t":1700000000000,"data":{"it":"'; exit 1 #"}}`+"\n")
	assert.Contains(t, r.stderr.String(), "rtm: the command failed for update of https://warehouse.example/widgets/2: exit status 3\n")
	assert.Contains(t, r.stderr.String(), "rtm: ended; events: 4, commands that failed: 1\n")
}

func TestTailKillsACommandWithAllThatItStarted(t *testing.T) {
	b := startTailBus(t)
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec-timeout", "300ms", "--exec", `sleep 1000 & echo "$!"; wait; echo late`)
	const tries = 20
	number := 1
	for ; r.stdout.String() == "" && number <= tries; number++ { // on a slow host it may be killed before it prints anything
		b.publish(t, number)
		r.stderr.waitFor(t, fmt.Sprintf("widgets/%d: killed after 300ms (--exec-timeout)\n", number))
	}
	pid, err := strconv.Atoi(strings.TrimSpace(r.stdout.String()))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isDead(pid) }, soon, time.Millisecond)
	b.publish(t, number)
	r.stderr.waitFor(t, fmt.Sprintf("widgets/%d: killed", number))
	r.end(t)
	assert.NotContains(t, r.stdout.String(), "late")
}

// isDead reports whether a process has ended, also if its parent has not waited for it yet.
func isDead(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestTailLetsACommandFinish(t *testing.T) {
	b := startTailBus(t)
	t.Setenv("GO_ON", filepath.Join(t.TempDir(), "fifo"))
	require.NoError(t, syscall.Mkfifo(os.Getenv("GO_ON"), 0o600))
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec", `echo began; cat "$GO_ON"; echo finished`, "--exec-timeout", soon.String())
	require.NoError(t, b.publisher.PublishAll(t.Context(), "widgets", []client.Event{b.event(1), b.event(2)}))
	r.stdout.waitFor(t, "began\n")
	r.interrupt()
	require.NoError(t, os.WriteFile(os.Getenv("GO_ON"), []byte("on\n"), 0))
	assert.Equal(t, 0, r.wait(t))
	assert.Equal(t, "began\non\nfinished\n", r.stdout.String(), "the second is not begun")
}
