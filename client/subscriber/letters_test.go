package subscriber_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/subscriber"
)

const aLetter = `"id":"AAAABBBBCCCCDDDDEEEE","died_at":9,"created_at":5,"reason":"attempts","status":400,"error":null,"note":null,
	"attempts":3,"bytes":70,"webhook_id":"AAAABBBBCCCCDDDDEEEE"`

func TestLettersAreRead(t *testing.T) {
	var queries []string
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Path+"?"+r.URL.RawQuery)
		if r.URL.Path == "/subscriber/dead_letters" {
			_, _ = io.WriteString(w, `[{`+aLetter+`,"events":2}]`)
		} else {
			_, _ = io.WriteString(w, `{`+aLetter+`,"events":[{"topic":"widgets"},{"unreadable":true}]}`)
		}
	}))
	want := subscriber.Letter{
		ID: "AAAABBBBCCCCDDDDEEEE", DiedAt: subscriber.Time{Time: time.UnixMilli(9)}, CreatedAt: subscriber.Time{Time: time.UnixMilli(5)},
		Reason: "attempts", Status: 400, Attempts: 3, Events: 2, Bytes: 70, WebhookID: "AAAABBBBCCCCDDDDEEEE",
	}
	filter := subscriber.LetterFilter{Reason: "age", Since: time.UnixMilli(0), Before: time.UnixMilli(7)}
	var all []subscriber.Letter
	for letter, err := range s.Letters(t.Context(), filter) {
		require.NoError(t, err)
		all = append(all, letter)
	}
	assert.Equal(t, []subscriber.Letter{want}, all)

	shown, err := s.Letter(t.Context(), want.ID, 1000)
	require.NoError(t, err)
	want.Events = 0
	assert.Equal(t, subscriber.LetterEvents{
		Letter: want, Events: []json.RawMessage{json.RawMessage(`{"topic":"widgets"}`), json.RawMessage(`{"unreadable":true}`)},
	}, shown)
	assert.Equal(t, []string{
		"/subscriber/dead_letters?before=7&limit=100&reason=age&since=0", "/subscriber/dead_letters/AAAABBBBCCCCDDDDEEEE?from=1000",
	}, queries)
}

// TestLettersAreMoved has 250 letters to redeliver and to discard, 100 a request.
func TestLettersAreMoved(t *testing.T) {
	var sent []string
	left := 0
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		n := min(left, 100)
		left -= n
		fmt.Fprintf(w, `{"letters":%d,"events":%d,"remaining":%d}`, n, 2*n, left)
	}))
	for path, move := range map[string]func(subscriber.LetterFilter) []subscriber.Moved{
		"redeliver": func(f subscriber.LetterFilter) (all []subscriber.Moved) {
			for moved, err := range s.RedeliverLetters(t.Context(), f) {
				require.NoError(t, err)
				all = append(all, moved)
			}
			return all
		},
		"discard": func(f subscriber.LetterFilter) (all []subscriber.Moved) {
			for moved, err := range s.DiscardLetters(t.Context(), f) {
				require.NoError(t, err)
				all = append(all, moved)
			}
			return all
		},
	} {
		sent, left = nil, 250
		assert.Equal(t, []subscriber.Moved{{100, 200, 150}, {200, 400, 50}, {250, 500, 0}}, move(subscriber.LetterFilter{}))
		assert.Equal(t, "POST /subscriber/dead_letters/"+path+` {"all":true}`, sent[2])
		move(subscriber.LetterFilter{Reason: "age", Since: time.UnixMilli(1), Before: time.UnixMilli(2)})
		assert.Equal(t, "POST /subscriber/dead_letters/"+path+` {"all":true,"reason":"age","since":1,"before":2}`, sent[3])
	}
	sent = nil
	require.NoError(t, s.RedeliverLetter(t.Context(), "x/y"))
	require.NoError(t, s.DiscardLetter(t.Context(), "z"))
	assert.Equal(t, []string{"POST /subscriber/dead_letters/x/y/redeliver ", "DELETE /subscriber/dead_letters/z "}, sent)
}

func TestAFailedMoveIsTheLast(t *testing.T) {
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	calls := 0
	for _, err := range s.DiscardLetters(t.Context(), subscriber.LetterFilter{}) {
		require.Error(t, err)
		calls++
	}
	assert.Equal(t, 1, calls)
}
