package subscriber_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// TestLettersAreMoved redelivers and discards 250 letters, 100 a request: the ones that were there
// when it began.
func TestLettersAreMoved(t *testing.T) {
	var sent []string
	left := 0
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.URL.String()+" "+string(body))
		if r.Method == http.MethodGet {
			newest := strings.Repeat(`{`+aLetter+`,"events":2}`, min(left, 1))
			_, _ = io.WriteString(w, "["+newest+"]")
			return
		}
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
		request := "POST /subscriber/dead_letters/" + path + ` {"all":true,"before":10}`
		assert.Equal(t, []string{"GET /subscriber/dead_letters?limit=100 ", request, request, request}, sent)
		sent, left = nil, 1
		move(subscriber.LetterFilter{Reason: "age", Status: 503, Since: time.UnixMilli(1), Before: time.UnixMilli(20)})
		assert.Equal(t, []string{
			"GET /subscriber/dead_letters?before=20&limit=100&reason=age&since=1&status=503 ",
			"POST /subscriber/dead_letters/" + path + ` {"all":true,"reason":"age","status":503,"since":1,"before":10}`,
		}, sent)
		sent, left = nil, 1
		move(subscriber.LetterFilter{Status: subscriber.NoAnswer})
		assert.Equal(t, []string{
			"GET /subscriber/dead_letters?limit=100&status=0 ",
			"POST /subscriber/dead_letters/" + path + ` {"all":true,"status":0,"before":10}`,
		}, sent)
		assert.Equal(t, []subscriber.Moved{{}}, move(subscriber.LetterFilter{}), "there are none left")
	}
	sent = nil
	require.NoError(t, s.RedeliverLetter(t.Context(), "x/y"))
	require.NoError(t, s.DiscardLetter(t.Context(), "z"))
	assert.Equal(t, []string{"POST /subscriber/dead_letters/x%2Fy/redeliver ", "DELETE /subscriber/dead_letters/z "}, sent)
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

func TestLettersAreReadInPages(t *testing.T) {
	var queries []string
	s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RequestURI())
		if strings.HasSuffix(r.URL.Path, "/count") {
			_, _ = io.WriteString(w, `{"letters":1204,"more":true}`)
			return
		}
		if r.URL.Query().Get("after") == "" {
			w.Header().Set("Link", `</subscriber/dead_letters?after=9-x>; rel="next"`)
		}
		_, _ = io.WriteString(w, `[{`+aLetter+`,"events":2}]`)
	}))
	filter := subscriber.LetterFilter{Reason: "age"}
	first, err := s.LetterPage(t.Context(), filter, "", 50)
	require.NoError(t, err)
	assert.Len(t, first.Letters, 1)
	assert.Equal(t, "9-x", first.Next)
	last, err := s.LetterPage(t.Context(), filter, first.Next, 50)
	require.NoError(t, err)
	assert.Empty(t, last.Next)
	count, err := s.CountLetters(t.Context(), filter)
	require.NoError(t, err)
	assert.Equal(t, subscriber.LetterCount{Letters: 1204, More: true}, count)
	_, err = s.CountLetters(t.Context(), subscriber.LetterFilter{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"/subscriber/dead_letters?limit=50&reason=age", "/subscriber/dead_letters?after=9-x&limit=50&reason=age",
		"/subscriber/dead_letters/count?reason=age", "/subscriber/dead_letters/count",
	}, queries)
}

func TestStatusesAreRead(t *testing.T) {
	for text, want := range map[string]int{"": 0, " 503 ": 503, "1": 1, "999": 999, "None": subscriber.NoAnswer} {
		got, ok := subscriber.ParseStatus(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "-1", "1000", "5xx", "no"} {
		_, ok := subscriber.ParseStatus(text)
		assert.False(t, ok, text)
	}
}
