package load

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// body is a delivery of events of publisher 3, by their numbers.
func body(t *testing.T, numbers ...int64) []byte {
	t.Helper()
	text := requestBody(deliveredJSON, len(numbers))
	events := allMarks(text)
	require.Len(t, events, len(numbers))
	for i, n := range numbers {
		stamp(events[i:i+1], 3, n, time.Now().Add(-time.Second))
	}
	require.True(t, json.Valid(text), string(text))
	return text
}

func TestEveryEventIsFollowed(t *testing.T) {
	f := &follower{}
	f.begin("/run/")
	f.deliver("/run/0", body(t, 0, 1, 2))
	f.deliver("/run/0", body(t, 4, 5, 3))
	f.deliver("/run/0", body(t, 5, 64, 6))
	f.deliver("/run/1", body(t, 0))   // another subscriber
	f.deliver("/other/0", body(t, 9)) // another run
	tally := f.read()
	assert.GreaterOrEqual(t, tally.P50, 999.0, "ms")
	tally.P50, tally.P99, tally.P999, tally.Max = 0, 0, 0, 0
	assert.Equal(t, Tally{Deliveries: 4, Distinct: 9, Duplicates: 1, OutOfOrder: 2}, tally)

	f.deliver("/run/0", []byte(`[{"url":"`+urlStart+`short"}]`))
	assert.Equal(t, int64(1), f.read().Unreadable)
	f.clearLatency()
	assert.Zero(t, f.read().Max)
	assert.True(t, f.refuse("/run/0"))
	assert.False(t, f.refuse("/other/0"))
	f.relent()
	assert.False(t, f.refuse("/run/0"))
	assert.Equal(t, int64(1), f.read().Refusals)
	f.begin("/run/")
	assert.Zero(t, f.read())
	assert.True(t, f.refuse("/run/0"))
}

// A sender that stalls once: in an open loop all that were due meanwhile are late, in a closed loop
// one is.
func TestAStallCountsForAllThatWereDue(t *testing.T) {
	const requests = 100
	for _, rate := range []float64{0, 1000} {
		var phase atomic.Int32
		phase.Store(measuring)
		sent := 0
		send := func(time.Time) error {
			switch sent++; sent {
			case 1:
				time.Sleep(200 * time.Millisecond)
			case requests + 1: // by number, not by time: then it does not matter if the host stalls besides
				phase.Store(over)
			}
			return nil
		}
		latency, err := Load{Senders: []Sender{send}, Rate: rate}.loop(t.Context(), 0, time.Now(), &phase)
		require.NoError(t, err)
		require.EqualValues(t, requests, latency.histogram.TotalCount())
		if rate == 0 {
			assert.Less(t, latency.Percentile(75), 50.0, "ms")
		} else {
			assert.Greater(t, latency.Percentile(0), 50.0, "ms")
		}
	}
}

func TestARefusedPublishEndsTheLoad(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer server.Close()
	publishers, err := Connect(t.Context(), Target{URL: server.URL, Token: "token", Topic: "bench"}, 1)
	require.NoError(t, err)
	defer publishers.Close()
	_, err = Load{Senders: publishers.Senders(), Window: Window{Measured: time.Minute}}.Run(t.Context())
	require.ErrorContains(t, err, "418 I'm a teapot")
	assert.Zero(t, publishers.Sent())
}

func TestAnAnswerMayHaveABody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/pub?topic=bench" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("OK"))
	}))
	defer server.Close()
	publishers, err := Connect(t.Context(), Target{URL: server.URL, Path: "/pub?topic=bench"}, 2)
	require.NoError(t, err)
	defer publishers.Close()
	progress, err := publishers.Fill(t.Context(), 7)
	require.NoError(t, err)
	assert.EqualValues(t, 7, publishers.Sent())
	assert.EqualValues(t, 7, progress.Last().Count)
}
