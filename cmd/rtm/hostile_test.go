package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// evil is a text that a terminal acts on, in 7 bits and in 8, and that would begin another line or
// column.
const evil = "a\x1b[2J\u009b2J\x7f\rb\n\tc\u202e"

// hostileBus answers with texts that no bus has.
func hostileBus(t *testing.T) *httptest.Server {
	list := func(object map[string]any) string {
		text, err := json.Marshal([]any{object})
		require.NoError(t, err)
		return string(text)
	}
	answers := map[string]string{
		"GET /api_tokens":  list(map[string]any{"name": evil, "token": evil}),
		"POST /api_tokens": strings.Trim(list(map[string]any{"name": evil, "token": evil}), "[]"),
		"GET /topics":      list(map[string]any{"name": evil, "publisher": evil, "events": 1}),
		"GET /subscriptions": list(map[string]any{
			"subscriber": evil, "name": evil, "uuid": evil, "callback": evil, "topics": []string{evil}, "events": map[string]any{"sent": 1},
		}),
		"GET /metrics":                 "",
		"GET /state-machines/m/labels": `{"labels":` + list(map[string]any{"name": evil, "state": evil}) + `}`,
		"GET /state-machines/m/labels/l": strings.Trim(list(map[string]any{
			"state": evil, "metadata": map[string]any{evil: evil}, "errored": map[string]any{"at": 1, "reason": evil}, "route": []string{evil},
		}), "[]"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.Method+" "+r.URL.Path]; ok {
			fmt.Fprint(w, answer)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		text, _ := json.Marshal(map[string]any{"title": evil, "detail": evil, "pointer": evil})
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestNoTextOfABusReachesATerminalAsItIs runs the commands against a bus that wants to harm the
// terminal. Nothing that is printed may be acted on, nor have more lines than it should.
func TestNoTextOfABusReachesATerminalAsItIs(t *testing.T) {
	server := hostileBus(t)
	for command, lines := range map[string]int{
		"token list": 1, "token list --json --show-tokens": 6, "token add shop": 1, "token del shop--1": 1, "sub list": 12, "sub list --json": -1,
		"sub add https://x@shop.example/ cats": 1, "topic list": 1, "topic list --json": 7, "topic del cats": 1,
		"pub created cats https://x.example/": 1, "__complete topic del": -1, "__complete pub created": -1,
		"top --once --interval 200ms": -1, "top --once --json --interval 200ms": -1, "-v topic list": 2, "tail cats": 1,
		"label list m": 1, "label list m --limit 1 --json": -1, "label show m l": 5, "label retry m l": 1,
	} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), append(strings.Fields(command), "-b", server.URL, "-t", "shop--2"), &stdout, &stderr)
		printed := stdout.String() + stderr.String()
		require.NotEmpty(t, printed, command)
		for _, r := range printed {
			require.True(t, r == '\n' || r == '\t' || strconv.IsPrint(r), "%s: %q", command, printed)
		}
		if lines >= 0 {
			assert.Equal(t, lines, strings.Count(printed, "\n"), "%s: %s", command, printed)
		}
		if strings.HasPrefix(command, "__complete") {
			assert.NotContains(t, printed, "2J", "shells evaluate what they complete")
		}
		if strings.Contains(command, "list --json") {
			assert.True(t, json.Valid(stdout.Bytes()), "%s: %s", command, printed)
			assert.Contains(t, printed, `\u009b2J\u007f`)
		}
	}
}

// TestATableHasNoTextOfABusAsItIs is the same for a terminal.
func TestATableHasNoTextOfABusAsItIs(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, list{header: []string{"NAME"}, rows: [][]string{{evil}}}.table(&out))
	writeJSONLine(&out, finding{Key: evil, Problem: evil})
	for _, r := range out.String() {
		require.True(t, r == '\n' || strconv.IsPrint(r), "%q", out.String())
	}
}

// TestAnAnswer101IsAFailure has a peer switch to another protocol, and say nothing more.
func TestAnAnswer101IsAFailure(t *testing.T) {
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		<-hold
	}))
	defer server.Close()
	defer close(hold)
	var stdout, stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"topic", "list", "-b", server.URL, "-t", "x"}, &stdout, &stderr)
	}()
	select {
	case status := <-ended:
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr.String(), "101 Switching Protocols")
	case <-time.After(soon):
		t.Fatal("it hangs")
	}
}
