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
	"routemaster/client/subscriber"
)

func TestTailRunsACommandForEachEvent(t *testing.T) {
	b := startTailBus(t)
	dir := t.TempDir()
	t.Setenv("SEEN", filepath.Join(dir, "seen"))
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec",
		`cat; echo "$RTM_TOPIC $RTM_TYPE $RTM_URL $RTM_TIMESTAMP"; case $RTM_URL in *2) exit 3;; esac; echo $RTM_URL >>"$SEEN"`)
	assert.Equal(t, 1, b.subscriptions(t)[0].Max)
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
	assert.Equal(t, 1, strings.Count(r.stdout.String(), "widgets/2 "), "what failed is not delivered again")
	assert.Contains(t, r.stderr.String(), "rtm: the command failed for update of https://warehouse.example/widgets/2: exit status 3\n")
	assert.Contains(t, r.stderr.String(), "rtm: unsubscribed; events: 4, commands that failed: 1\n")
	b.requireNothingLeft(t)
}

func TestTailHasAnEventDeliveredAgain(t *testing.T) {
	b := startTailBus(t)
	t.Setenv("SEEN", filepath.Join(t.TempDir(), "seen"))
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec-retry", "--batch-size", "3", "--latency", "60000",
		"--exec", `echo tried $RTM_URL; case $RTM_URL in *2) [ -e "$SEEN" ] || { touch "$SEEN"; exit 1; };; esac`)
	require.NoError(t, b.publisher.PublishAll(t.Context(), "widgets", []client.Event{b.event(1), b.event(2), b.event(3)}))
	require.Eventually(t, func() bool { return b.subscriptions(t)[0].Sent == 3 }, soon, 10*time.Millisecond)
	tried := strings.ReplaceAll(r.stdout.String(), "tried https://warehouse.example/widgets/", "")
	assert.Equal(t, "1 2 3 2", strings.Join(strings.Fields(tried), " "), "only what failed comes again; what is behind it does not wait")
	status, out, said := b.rtm(t, rootKey, "attempts", "--json", "--subscriber", b.subscriptions(t)[0].Subscriber)
	require.Equal(t, 0, status, said)
	var attempts []subscriber.Attempt
	require.NoError(t, json.Unmarshal([]byte(out), &attempts))
	require.Len(t, attempts, 1)
	assert.Equal(t, []int{2, 1}, []int{attempts[0].Acknowledged, attempts[0].Retried})
	r.end(t)
	assert.Contains(t, r.stderr.String(), "widgets/2: exit status 1; the bus is asked to deliver it again\n")
	assert.Contains(t, r.stderr.String(), "rtm: unsubscribed; events: 3, commands that failed: 1\n")
	assert.NotContains(t, r.stderr.String(), "succeed", "deliveries do arrive")
	b.requireNothingLeft(t)
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

// isDead reports whether a process has ended; nobody may have waited for it yet.
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
	r := startTail(t, b.testBus, rootKey, "widgets", "--exec", `echo began; cat "$GO_ON"; echo finished`)
	require.NoError(t, b.publisher.PublishAll(t.Context(), "widgets", []client.Event{b.event(1), b.event(2)}))
	r.stdout.waitFor(t, "began\n")
	r.interrupt()
	require.Eventually(t, func() bool { return len(b.subscriptions(t)) == 0 }, soon, time.Millisecond, "it unsubscribes first")
	require.NoError(t, os.WriteFile(os.Getenv("GO_ON"), []byte("on\n"), 0))
	assert.Equal(t, 0, r.wait(t))
	assert.Equal(t, "began\non\nfinished\n", r.stdout.String(), "the second is not begun")
	b.requireNothingLeft(t)
}
