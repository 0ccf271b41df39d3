package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/subscriber"
	"routemaster/internal/app"
)

const (
	letterOf400 = `{"id":"AAAABBBBCCCCDDDDEEEE","died_at":1700000000000,"created_at":1690000000000,"reason":"rejected","status":207,"error":null,
		"note":"no such \u001b[31m account","attempts":2,"events":1,"bytes":70,"webhook_id":null}`
	letterOfAge = `{"id":"AAAABBBBCCCCDDDDEEEF","died_at":1700000000001,"created_at":1690000000000,"reason":"age","status":null,"error":"timeout",
		"note":null,"attempts":40,"events":100,"bytes":7000,"webhook_id":null}`
)

func TestDeadLettersAreShown(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"GET /subscriber/dead_letters":                      "[" + letterOfAge + "," + letterOf400 + "]",
		"GET /subscriber/dead_letters/AAAABBBBCCCCDDDDEEEE": strings.Replace(letterOf400, `"events":1`, `"events":[{"topic":"widgets"},{"unreadable":true}]`, 1),
	})
	status, out, errors := b.rtm(t, "dead", "list")
	require.Equal(t, app.ExitOK, status, errors)
	assert.Equal(t, "AAAABBBBCCCCDDDDEEEF\t1700000000001\tage\t0\ttimeout\t40\t100\t\n"+
		"AAAABBBBCCCCDDDDEEEE\t1700000000000\trejected\t207\t\t2\t1\tno such \\u001b[31m account\n", out)
	_, out, _ = b.rtm(t, "dead", "list", "--json")
	var all []subscriber.Letter
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	assert.Len(t, all, 2)
	_, out, _ = b.rtm(t, "dead", "show", "AAAABBBBCCCCDDDDEEEE")
	assert.Equal(t, "{\"topic\":\"widgets\"}\n{\"unreadable\":true}\n", out)
}

func TestDeadLettersAreMoved(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"GET /subscriber/dead_letters":                "[" + letterOfAge + "," + letterOf400 + "]",
		"POST /subscriber/dead_letters/redeliver":     `{"letters":5,"events":9,"remaining":0}`,
		"POST /subscriber/dead_letters/discard":       `{"letters":0,"events":0,"remaining":0}`,
		"POST /subscriber/dead_letters/one/redeliver": "", "POST /subscriber/dead_letters/two/redeliver": "",
		"DELETE /subscriber/dead_letters/one": "",
	})
	for _, c := range []struct{ args, out string }{
		{"redeliver one two", "redelivered one\nredelivered two\n"},
		{"discard one", "discarded one\n"},
		{"redeliver --all", "redelivered 5 dead letters with 9 events\n"},
		{"discard --all --reason age --status 503 --since 2026-01-31T12:00:00Z --before 1800000000000", "discarded 0 dead letters with 0 events\n"},
		{"redeliver --all --dry-run", "there are 2 dead letters with 101 events\n"},
	} {
		status, out, errors := b.rtm(t, append([]string{"dead"}, strings.Fields(c.args)...)...)
		assert.Equal(t, app.ExitOK, status, errors)
		assert.Equal(t, c.out, out, c.args)
	}
	assert.Equal(t, []string{
		"POST /subscriber/dead_letters/one/redeliver", "POST /subscriber/dead_letters/two/redeliver", "DELETE /subscriber/dead_letters/one",
		"GET /subscriber/dead_letters", `POST /subscriber/dead_letters/redeliver {"all":true,"before":1700000000002}`,
		"GET /subscriber/dead_letters",
		`POST /subscriber/dead_letters/discard {"all":true,"reason":"age","status":503,"since":1769860800000,"before":1700000000002}`,
		"GET /subscriber/dead_letters",
	}, b.requests)
	for _, args := range []string{
		"redeliver", "discard one --all", "redeliver one --reason age", "redeliver one --dry-run", "redeliver --all --since yesterday",
		"list --status 0", "list --status timeout", "redeliver one --status 503",
		"list --before -3h", "show x --from -1",
	} {
		status, _, _ := b.rtm(t, append([]string{"dead"}, strings.Fields(args)...)...)
		assert.Equal(t, app.ExitUsage, status, args)
	}
	status, _, errors := b.rtm(t, "dead", "redeliver", "three", "one")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "three: ")
}

func TestPointsInTime(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for text, want := range map[string]int64{
		"3h": 1_700_000_000_000 - 3*3_600_000, "0s": 1_700_000_000_000, "1690000000000": 1_690_000_000_000, "2023-11-14T22:13:20Z": 1_700_000_000_000,
	} {
		at, ok := pointInTime(text, now)
		assert.True(t, ok, text)
		assert.Equal(t, want, at.UnixMilli(), text)
	}
	for _, text := range []string{"", "-3h", "yesterday", "-1", "2023-11-14"} {
		_, ok := pointInTime(text, now)
		assert.False(t, ok, text)
	}
}

// TestWhatWasRefusedIsRedelivered has a receiver refuse one of two events for good, and redelivers
// that when the receiver takes it: alone, and with the webhook-id that it had.
func TestWhatWasRefusedIsRedelivered(t *testing.T) {
	b := startBus(t)
	var healthy atomic.Bool
	type delivery struct{ id, body string }
	refused, taken := make(chan delivery, 10), make(chan delivery, 10)
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := delivery{r.Header.Get("webhook-id"), string(body)}
		if strings.Contains(got.body, "/bad") && !healthy.Load() {
			refused <- got
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		taken <- got
	}))
	t.Cleanup(receiver.Close)
	shop := b.addClient(t, "shop")
	rtm := func(args ...string) string {
		t.Helper()
		var out, errors strings.Builder
		require.Equal(t, app.ExitOK, run(t.Context(), append(args, "-b", b.url, "-t", shop), &out, &errors), "%s", &errors)
		return out.String()
	}
	receive := func(from chan delivery) (got delivery) {
		t.Helper()
		select {
		case got = <-from:
		case <-time.After(soon):
			require.Fail(t, "nothing was delivered")
		}
		return got
	}
	rtm("sub", "add", strings.Replace(receiver.URL, "https://", "https://uuid@", 1), "widgets", "--latency", "1000", "--batch-size", "2")
	rtm("sub", "set", "--dead-letters", "attempts=3")
	rtm("sub", "secret", "add")
	file := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(file, []byte(`{"topic":"widgets","type":"create","url":"https://x.example/good"}
		{"topic":"widgets","type":"create","url":"https://x.example/bad"}`), 0o600))
	rtm("pub", "--file", file)
	assert.Contains(t, receive(refused).body, "/good")
	assert.NotContains(t, receive(taken).body, "/bad")
	dead := receive(refused)
	assert.NotContains(t, dead.body, "/good")

	var letter string
	require.Eventually(t, func() bool { letter = rtm("dead", "list"); return letter != "" }, soon, 10*time.Millisecond)
	fields := strings.Split(strings.TrimSuffix(letter, "\n"), "\t")
	require.Len(t, fields, 8)
	assert.Equal(t, []string{"refused", "422", ""}, fields[2:5])
	assert.Equal(t, "1", fields[6], "one event")
	var event map[string]any
	require.NoError(t, json.Unmarshal([]byte(rtm("dead", "show", fields[0])), &event))
	assert.Equal(t, "https://x.example/bad", event["url"])
	require.Eventually(t, func() bool { return rtm("queue", "list") == "" }, soon, 10*time.Millisecond)

	healthy.Store(true)
	assert.Equal(t, "redelivered 1 dead letters with 1 events\n", rtm("dead", "redeliver", "--all", "--since", "1h"))
	assert.Equal(t, dead, receive(taken))
	assert.Empty(t, rtm("dead", "list"))
	require.Eventually(t, func() bool { return rtm("queue", "list") == "" }, soon, 10*time.Millisecond)
	assert.Empty(t, b.redis.Raw.Keys(t.Context(), "deadletter*").Val())
	assert.Empty(t, refused)
	assert.Empty(t, taken)
}
