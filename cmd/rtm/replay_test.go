package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/app"
)

func TestReplays(t *testing.T) {
	b := newCannedBus(t, map[string]string{
		"POST /subscriber/replays": `{"id":"AAAABBBBCCCCDDDDEEEE","topic":"widgets","from":4,"to":9,"events":6}`,
		"GET /subscriber/replays": `[{"id":"AAAABBBBCCCCDDDDEEEE","topic":"widgets","from":4,"to":9,"next":7,"copied":2,"skipped":1,
			"state":"running","created_at":1700000000000,"error":null}]`,
		"DELETE /subscriber/replays/AAAABBBBCCCCDDDDEEEE": "",
	})
	for _, c := range [][2]string{
		{"start widgets --from 1 --until 1700000000000", "replay AAAABBBBCCCCDDDDEEEE of events 4 to 9 began\n"},
		{"start widgets --since 1700000000000 --to 9", "replay AAAABBBBCCCCDDDDEEEE of events 4 to 9 began\n"},
		{"start widgets", "replay AAAABBBBCCCCDDDDEEEE of events 4 to 9 began\n"},
		{"list", "AAAABBBBCCCCDDDDEEEE\twidgets\t1700000000000\t4\t9\t2\t1\trunning\t\n"},
		{"cancel AAAABBBBCCCCDDDDEEEE", "cancelled AAAABBBBCCCCDDDDEEEE\n"},
	} {
		status, out, errors := b.rtm(t, append([]string{"replay"}, strings.Fields(c[0])...)...)
		assert.Equal(t, app.ExitOK, status, errors)
		assert.Equal(t, c[1], out, c[0])
	}
	assert.Equal(t, []string{
		`POST /subscriber/replays {"topic":"widgets","from":1,"until":1700000000000}`,
		`POST /subscriber/replays {"topic":"widgets","since":1700000000000,"to":9}`,
		`POST /subscriber/replays {"topic":"widgets"}`,
		"GET /subscriber/replays", "DELETE /subscriber/replays/AAAABBBBCCCCDDDDEEEE",
	}, b.requests)
	for _, args := range []string{"--from 1 --since 2h", "--from 0", "--from 1 --to 0", "--from 1 --to 2 --until 1h", "--since yesterday", "--from 1 --until x"} {
		status, _, _ := b.rtm(t, append([]string{"replay", "start", "widgets"}, strings.Fields(args)...)...)
		assert.Equal(t, app.ExitUsage, status, args)
	}
}
