package bench

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
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
	marks, err := marksOf(text)
	require.NoError(t, err)
	for i, n := range numbers {
		putDigits(publisherOf(marks[i]), 3)
		putDigits(numberOf(marks[i]), n)
		putDigits(dueOf(marks[i]), time.Now().Add(-time.Second).UnixNano())
	}
	require.True(t, json.Valid(text), string(text))
	return text
}

func TestEveryEventIsFollowed(t *testing.T) {
	f := &follower{}
	f.begin("/run/")
	f.deliver("/run/0", body(t, 0, 1, 2), true)
	f.deliver("/run/0", body(t, 4, 5, 3), false)
	f.deliver("/run/0", body(t, 5, 64, 6), false)
	f.deliver("/run/1", body(t, 0), false)   // another subscriber
	f.deliver("/other/0", body(t, 9), false) // another run
	tally := f.read()
	assert.GreaterOrEqual(t, tally.P50, 999.0, "ms")
	tally.P50, tally.P99, tally.P999, tally.Max = 0, 0, 0, 0
	assert.Equal(t, Tally{Deliveries: 4, HTTP2: 1, Distinct: 9, Duplicates: 1, OutOfOrder: 2}, tally)

	f.deliver("/run/0", []byte(`[{"url":"`+urlStart+`short"}]`), false)
	assert.Equal(t, int64(1), f.read().Unreadable)
	f.clearLatency()
	assert.Zero(t, f.read().Max)
	f.begin("/run/")
	assert.Zero(t, f.read())
}

// A sender that stalls once: in an open loop all that were due meanwhile are late, in a closed loop one is.
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
			case requests + 1: // by number, not by time: then it does not matter if the machine stalls besides
				phase.Store(over)
			}
			return nil
		}
		latency := newLatencies()
		require.NoError(t, load{senders: []sender{send}, rate: rate}.loop(t.Context(), 0, send, time.Now(), &phase, latency))
		require.EqualValues(t, requests, latency.TotalCount())
		if rate == 0 {
			assert.Less(t, latency.ValueAtQuantile(75), int64(50_000), "µs")
		} else {
			assert.Greater(t, latency.Min(), int64(50_000), "µs")
		}
	}
}

func TestARefusedPublishEndsTheLoad(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer server.Close()
	c, err := newClient(t.Context(), server.URL, false, "/topics/bench", "token", 1, 0)
	require.NoError(t, err)
	defer c.close()
	_, err = load{senders: senders([]*client{c}), window: window{measured: time.Minute}}.run(t.Context())
	require.ErrorContains(t, err, "418 I'm a teapot")
	assert.Zero(t, c.sent)
}

func TestRatesBetweenSamples(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.UnixMilli(0).Add(time.Duration(seconds * float64(time.Second)))
	}
	s := samples{{at(0), 0}, {at(1), 0}, {at(2), 100}, {at(4), 100}, {at(5), 300}}
	assert.Equal(t, at(1.5), s.reached(50))
	assert.Equal(t, at(2), s.reached(100))
	assert.Equal(t, at(4.5), s.reached(200))
	assert.InDelta(t, 199/3.5, s.rate(1, 200), 1, "what came before the first does not count, a stall does")
}

func TestGoals(t *testing.T) {
	report := &Report{Figures: map[string]float64{figurePublish: 0.5, figurePublishCPU: 25.1, figureLost: 0}}
	report.least(figureKeepingUp, 0.99)
	report.least(figureKeepingUp, 0.97)
	report.least(figureKeepingUp, 1)
	report.judge()
	met := map[string]bool{}
	for _, v := range report.Summary {
		if v.Measured != nil {
			met[v.Figure] = v.Met
		}
	}
	assert.Equal(t, map[string]bool{figurePublish: true, figurePublishCPU: false, figureLost: true, figureKeepingUp: false}, met)
}

func TestRowsOfOtherNamesAreBlocks(t *testing.T) {
	table := &Table{Scenario: "s", About: "about"}
	table.add(Row{{"a", 1}}, Row{{"longer", nil}})
	table.add(Row{{"a", 12.345}, {"longer", 1234.5}})
	table.add(Row{{"b", int64(2)}, {"text", "left"}})
	table.note("%d note", 1)
	var out strings.Builder
	require.NoError(t, table.Write(&out))
	assert.Equal(t, `s: about

     a  longer
     1       -
  12.3    1234

  b  text
  2  left

1 note

`, out.String())
	text, err := json.Marshal(table.Rows[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":12.345,"longer":1234.5}`, string(text))
}

func TestRedisReplies(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() { // it ends with its connection
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for _, reply := range []string{"+OK\r\n", ":7\r\n", "$-1\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$4\r\nk\r\n1\r\n", "-ERR no\r\n"} {
			_, _ = conn.Read(make([]byte, 100))
			fmt.Fprint(conn, reply)
		}
	}()
	conn, err := dialRedis(t.Context(), listener.Addr().String())
	require.NoError(t, err)
	defer conn.close()
	for _, want := range []any{"OK", int64(7), nil, []any{"0", []any{"k\r\n1"}}} {
		got, err := conn.do("X")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err = conn.do("X")
	require.EqualError(t, err, "redis: ERR no")
}

func TestAProgramThatFailsSaysWhy(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	p, err := start("thing", exec.Command(sh, "-c", "echo it is broken >&2; exit 1"))
	require.NoError(t, err)
	_, err = p.listening(t.Context())
	require.EqualError(t, err, "thing has ended: it is broken")
	require.NoError(t, p.stop())
}
