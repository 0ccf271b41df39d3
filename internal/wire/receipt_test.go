package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseReceipt(t *testing.T) {
	for text, want := range map[string]Receipt{
		`{}`:                           {},
		` {"retry":[3,1]} `:            {Retry: []int{1, 3}},
		`{"retry_from":8}`:             {Retry: []int{8, 9}},
		`{"retry_from":0}`:             {Retry: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		`{"retry":[9],"retry_from":8}`: {Retry: []int{8, 9}},
		`{"reject":[9,{"index":2,"reason":"no such account"}],"retry_from":8}`: {
			Retry: []int{8}, Rejected: []Rejection{{2, "no such account"}, {9, ""}},
		},
		`{"reject":[{"reason":"` + strings.Repeat("ä", 300) + `","index":0}]}`: {
			Rejected: []Rejection{{0, strings.Repeat("ä", 256)}},
		},
	} {
		got, err := ParseReceipt([]byte(text), 10)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestAnUnreadableReceipt(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                  "must be an object",
		`null`:                                "must be an object",
		``:                                    "line 1",
		`<html>`:                              "line 1",
		`{"retry":[3`:                         "line 1",
		`{} {}`:                               "there is something after the JSON value",
		`{"retry":"3"}`:                       "/retry: must be an array",
		`{"retry":[3.0]}`:                     "/retry/0: must be the index",
		`{"retry":[1e0]}`:                     "/retry/0: must be the index",
		`{"retry":["1"]}`:                     "/retry/0: must be the index",
		`{"retry":[-1]}`:                      "/retry/0: must be the index of an event, an integer from 0 to 9",
		`{"retry":[10]}`:                      "/retry/0: must be the index",
		`{"retry":[99999999999999999999]}`:    "/retry/0: must be the index",
		`{"retry_from":10}`:                   "/retry_from: must be the index",
		`{"retry":[1,1]}`:                     "/retry/1: event 1 is named twice",
		`{"retry":[1],"reject":[1]}`:          "/reject/0: event 1 is named twice",
		`{"failed":[1]}`:                      "/failed: is not known here",
		`{"retry":[1],"retry":[2]}`:           "duplicate",
		`{"reject":[{"reason":"x"}]}`:         "has no index",
		`{"reject":[{"index":1,"why":"x"}]}`:  "/reject/0/why: is not known here",
		`{"reject":[{"index":1,"reason":5}]}`: "/reject/0/reason: must be a string",
		`{"retry":[` + strings.Repeat(" ", MaxReceipt) + `]}`: "longer than 262144 bytes",
	} {
		_, err := ParseReceipt([]byte(text), 10)
		require.ErrorContains(t, err, want, "%.60s", text)
		assert.NotRegexp(t, "^:", err.Error(), "%.60s", text)
	}
}

func FuzzParseReceipt(f *testing.F) {
	for _, text := range []string{`{}`, `{"retry":[1],"reject":[{"index":2,"reason":"x"}],"retry_from":5}`, `[`, `{"retry":[1,1]}`} {
		f.Add([]byte(text), 10)
	}
	f.Fuzz(func(t *testing.T, text []byte, events int) {
		events = min(max(events, 1), 1000)
		r, err := ParseReceipt(text, events)
		if err != nil {
			return
		}
		named := map[int]bool{}
		for _, i := range r.Retry {
			assert.False(t, named[i])
			named[i] = true
		}
		for _, rejected := range r.Rejected {
			assert.False(t, named[rejected.Index])
			named[rejected.Index] = true
		}
		for i := range named {
			assert.True(t, i >= 0 && i < events)
		}
	})
}
