package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/subscriber"
	"routemaster/internal/app"
)

// cannedBus answers requests about a subscriber, and keeps them.
type cannedBus struct {
	url string

	mu       sync.Mutex
	requests []string
	answers  map[string]string
}

func newCannedBus(t *testing.T, answers map[string]string) *cannedBus {
	b := &cannedBus{answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests = append(b.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		answer, ok := b.answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// answer changes an answer.
func (b *cannedBus) answer(request, answer string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[request] = answer
}

// rtm runs rtm for the bus.
func (b *cannedBus) rtm(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(t.Context(), append(args, "-b", b.url, "-t", "shop--1"), &out, &errors)
	return status, out.String(), errors.String()
}

const (
	failedAttempt = `{"at":1700000000000,"batch":"AAAABBBBCCCCDDDDEEEE","attempt":3,"events":7,"outcome":"failed","status":404,"error":null,
		"duration":12,"retry_at":1700000060000,"excerpt":null,"webhook_id":null}`
	refusedAttempt = `{"at":1700000000001,"batch":"AAAABBBBCCCCDDDDEEEF","attempt":1,"events":1,"outcome":"failed","status":null,"error":"tls",
		"detail":"x509: \u001b[31m expired","duration":5,"retry_at":null}`
)

func TestAttemptsAreShown(t *testing.T) {
	b := newCannedBus(t, map[string]string{"GET /subscribers/shop--1/attempts": "[" + refusedAttempt + "," + failedAttempt + "]", "GET /subscriber/attempts": "[]"})
	status, out, errors := b.rtm(t, "attempts", "--subscriber", "shop--1")
	require.Equal(t, app.ExitOK, status, errors)
	assert.Equal(t, "1700000000001\tAAAABBBBCCCCDDDDEEEF\t1\t1\tfailed\t0\ttls\t5\t\n"+
		"1700000000000\tAAAABBBBCCCCDDDDEEEE\t3\t7\tfailed\t404\t\t12\t1700000060000\n", out)

	_, out, _ = b.rtm(t, "attempts", "--subscriber", "shop--1", "--json")
	var all []subscriber.Attempt
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	assert.Len(t, all, 2)
	_, out, _ = b.rtm(t, "attempts", "--json")
	assert.Equal(t, "[]\n", out)

	_, _, errors = b.rtm(t, "attempts", "--subscriber", "shop--1", "-v")
	assert.Contains(t, errors, "/subscribers/…/attempts")
	assert.NotContains(t, errors, "shop--1")
	status, _, errors = b.rtm(t, "sub", "show")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "--subscriber")
}

func TestAttemptsAreFollowed(t *testing.T) {
	const request = "GET /subscriber/attempts"
	b := newCannedBus(t, map[string]string{request: "[" + failedAttempt + "]"})
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errors screen
	done := make(chan int)
	go func() { done <- run(ctx, []string{"attempts", "-f", "-b", b.url, "-t", "shop--1"}, &out, &errors) }()
	out.waitFor(t, "attempt 3, 7 events: failed, 404 Not Found, 12ms; the receiver has no such path")
	b.answer(request, "["+refusedAttempt+","+failedAttempt+"]")
	out.waitFor(t, `attempt 1, 1 events: failed, tls, 5ms; the TLS handshake failed`)
	interrupt()
	assert.Equal(t, app.ExitOK, <-done)
	assert.Equal(t, 2, strings.Count(out.String(), "\n"), "each once: %s", out.String())
	assert.NotContains(t, out.String(), "\x1b")
}

func TestTheQueueIsShown(t *testing.T) {
	const id = "AAAABBBBCCCCDDDDEEEE"
	b := newCannedBus(t, map[string]string{
		"GET /subscriber/batches":          `[{"id":"` + id + `","created_at":5,"attempts":2,"events":3,"state":"retrying","next_at":null}]`,
		"GET /subscriber/batches/" + id:    `{"id":"` + id + `","events":[{"topic":"widgets","type":"noop","url":"https://x.example/","t":1}]}`,
		"DELETE /subscriber/batches/" + id: ``,
	})
	_, out, errors := b.rtm(t, "queue", "list")
	assert.Equal(t, id+"\t5\t2\t3\tretrying\t\n", out, errors)
	_, out, _ = b.rtm(t, "queue", "show", id)
	assert.JSONEq(t, `{"topic":"widgets","type":"noop","url":"https://x.example/","t":1}`, out)
	_, out, _ = b.rtm(t, "queue", "remove", id)
	assert.Equal(t, "removed "+id+"\n", out)
	status, _, _ := b.rtm(t, "queue", "show", id, "--from", "-1")
	assert.Equal(t, app.ExitUsage, status)
}

func TestASubscriberIsLookedAfter(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"GET /subscriber": `{"topics":["widgets"],"callback":"https://shop.example/events","uuid":"secret","timeout":500,"max":100,"max_bytes":1000,"lanes":8,"order_key":"/data/account",
			"dead_letters":{"attempts":20,"age":259200000},"log_attempts":"failures","status":{"queued":7,"health_points":98,"paused_until":253402300799999}}`,
		"GET /subscriber/attempts": "[" + failedAttempt + "]",
		"PATCH /subscriber":        "", "POST /subscriber/pause": "", "POST /subscriber/resume": "",
		"POST /subscriber/retry": "",
	})
	_, out, errors := b.rtm(t, "sub", "show")
	assert.Contains(t, out, "callback\thttps://shop.example/events\n", errors)
	assert.Contains(t, out, "max bytes\t1000 bytes in a delivery\n")
	assert.Contains(t, out, "requests\tno limit\n")
	assert.Contains(t, out, "lanes\t8, by /data/account\n")
	assert.Contains(t, out, "dead letters\ton attempts=20 age=72h0m0s\n")
	assert.Contains(t, out, "state\tpaused until somebody resumes it\n")
	assert.Contains(t, out, "failed, 404 Not Found, 12ms; the receiver has no such path")
	assert.NotContains(t, out, "secret")
	for _, args := range [][]string{{"set", "--strict"}, {"pause"}, {"resume"}, {"retry"}} {
		status, _, errors := b.rtm(t, append([]string{"sub"}, args...)...)
		assert.Equal(t, app.ExitOK, status, errors)
	}
	assert.Equal(t, []string{
		`PATCH /subscriber {"strict_order":true}`, "POST /subscriber/pause {}", "POST /subscriber/resume", "POST /subscriber/retry",
	}, b.requests[2:])
	b.requests = nil
	_, _, _ = b.rtm(t, "sub", "pause", "--for", "2h")
	assert.Regexp(t, `^POST /subscriber/pause {"until":\d{13}}$`, b.requests[0])
	status, _, _ := b.rtm(t, "sub", "pause", "--for", "1ms")
	assert.Equal(t, app.ExitUsage, status)
}

func TestATestEventIsWaitedFor(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"POST /subscriber/test": `{"batch":"AAAABBBBCCCCDDDDEEEE"}`, "GET /subscriber/attempts": "[" + failedAttempt + "]",
		"GET /subscriber": `{}`,
	})
	_, out, _ := b.rtm(t, "sub", "test")
	assert.Equal(t, "AAAABBBBCCCCDDDDEEEE\n", out)
	status, _, errors := b.rtm(t, "sub", "test", "--wait")
	assert.Equal(t, app.ExitFailed, status)
	assert.Equal(t, "rtm: the test event was not delivered: failed, 404 Not Found, 12ms; the receiver has no such path: "+
		"correct the path of the callback\n", errors)
	b.answer("GET /subscriber/attempts", `[{"outcome":"acknowledged","status":204,"duration":3}]`)
	status, out, _ = b.rtm(t, "sub", "test", "--wait")
	assert.Equal(t, app.ExitOK, status)
	assert.Equal(t, "the test event was delivered: acknowledged, 204 No Content, 3ms\n", out)
}

// TestEachFailureHasARemedy requires a remedy for each way in which a delivery fails.
func TestEachFailureHasARemedy(t *testing.T) {
	seen := map[string]string{}
	for _, class := range []string{"dns", "denied", "refused", "unreachable", "connect_timeout", "tls", "timeout", "reset", "protocol", "receipt", "secrets"} {
		text := subscriber.Attempt{Outcome: "failed", Error: class}.Remedy()
		require.NotEmpty(t, text, class)
		assert.Empty(t, seen[text], "%s and %s are told apart", class, seen[text])
		seen[text] = class
	}
	for _, status := range []int{301, 400, 401, 404, 410, 413, 418, 429, 500, 502, 503} {
		assert.NotEmpty(t, subscriber.Attempt{Outcome: "failed", Status: status}.Remedy(), fmt.Sprint(status))
	}
	assert.Empty(t, subscriber.Attempt{Outcome: "acknowledged", Status: 204}.Remedy())
	for _, outcome := range []string{"failed", "partial", "dead"} {
		assert.Contains(t, subscriber.Attempt{Outcome: outcome, Status: 207}.Remedy(), "the receipt", outcome)
	}
}
