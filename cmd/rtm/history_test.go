package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

func TestTheHistoryOfATopic(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"GET /topics/widgets/history": `{"events":null,"age":3600000,"bytes":null,"first":3,"last":9,"oldest_at":1700000000000,"stored_events":7,"stored_bytes":99}`,
		"PUT /topics/widgets/history": "", "DELETE /topics/widgets/history": "",
	})
	for args, want := range map[string]string{
		"":                        "0\t3600000\t0\t3\t9\t1700000000000\t7\t99\n",
		"--events 5":              "",
		"--age 72h --bytes 100KB": "",
		"--off":                   "",
	} {
		status, out, errors := b.rtm(t, append([]string{"topic", "history", "widgets"}, strings.Fields(args)...)...)
		assert.Equal(t, app.ExitOK, status, errors)
		assert.Equal(t, want, out, args)
	}
	assert.ElementsMatch(t, []string{
		"GET /topics/widgets/history", `PUT /topics/widgets/history {"events":5}`,
		`PUT /topics/widgets/history {"age":259200000,"bytes":100000}`, "DELETE /topics/widgets/history",
	}, b.requests)
	_, out, _ := b.rtm(t, "topic", "history", "widgets", "--json")
	assert.JSONEq(t, `{"age":3600000,"first":3,"last":9,"oldest_at":1700000000000,"stored_events":7,"stored_bytes":99}`, out)
	for _, args := range []string{"--off --events 5", "--age 1ns", "--age -1h", "--age x", "--bytes x"} {
		status, _, _ := b.rtm(t, append([]string{"topic", "history", "widgets"}, strings.Fields(args)...)...)
		assert.Equal(t, app.ExitUsage, status, args)
	}
	status, _, errors := b.rtm(t, "topic", "history", "gadgets")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "show a history: 403")
}

func TestEventsOfATopic(t *testing.T) {
	const request = "GET /topics/widgets/events"
	const one = `{"position":4,"received_at":1700000000000,"topic":"widgets","type":"noop","url":"https://x.example/\u001b","t":6}`
	const two = `{"position":5,"received_at":1700000000001,"unreadable":true}`
	b := newCannedBus(t, map[string]string{request: `{"first":4,"last":5,"next":6,"events":[` + one + "," + two + `]}`})
	status, out, errors := b.rtm(t, "events", "widgets", "--from", "2")
	require.Equal(t, app.ExitOK, status, errors)
	assert.Equal(t, `{"position":4,"received_at":1700000000000,"topic":"widgets","type":"noop","url":"https://x.example/\u001b","t":6}`+"\n"+two+"\n", out)
	assert.Equal(t, "rtm: events 2 to 3 are not kept any more\n", errors)
	for _, args := range []string{"--from 0", "--from 1 --since 2h", "--since yesterday", "--limit 0"} {
		status, _, _ := b.rtm(t, append([]string{"events", "widgets"}, strings.Fields(args)...)...)
		assert.Equal(t, app.ExitUsage, status, args)
	}
	b.answer(request, `{"first":4,"last":9,"next":5,"events":[`+one+`]}`)
	_, out, _ = b.rtm(t, "events", "widgets", "--since", "2h", "--limit", "1")
	assert.Equal(t, 1, strings.Count(out, "\n"))
}

func TestEventsAreFollowed(t *testing.T) {
	const request = "GET /topics/widgets/events"
	b := newCannedBus(t, map[string]string{request: `{"first":4,"last":3,"next":4,"events":[]}`})
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errors screen
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"events", "widgets", "-f", "-b", b.url, "-t", "shop--1"}, &out, &errors)
	}()
	b.answer(request, `{"first":4,"last":4,"next":5,"events":[{"position":4,"received_at":1,"unreadable":true}]}`)
	out.waitFor(t, `{"position":4,"received_at":1,"unreadable":true}`)
	b.answer(request, `{"first":7,"last":6,"next":7,"events":[]}`)
	errors.waitFor(t, "rtm: events 5 to 6 are not kept any more")
	interrupt()
	assert.Equal(t, app.ExitOK, <-done)
}
