package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
)

// chunksOf reads all chunks of a text.
func chunksOf(t *testing.T, text, topic, name string) (all []*chunk) {
	t.Helper()
	reader := newChunker(strings.NewReader(text), topic, name)
	for {
		c, err := reader.read()
		require.NoError(t, err)
		if c == nil {
			return all
		}
		all = append(all, c)
	}
}

func eventLine(topic string, number int) string {
	return fmt.Sprintf(`{"topic":%q,"type":"update","url":"https://x.example/%d"}`+"\n", topic, number)
}

func TestChunksAreConsecutiveLinesOfOneTopic(t *testing.T) {
	var text strings.Builder
	for i := range client.MaxBulk + 2 {
		text.WriteString(eventLine("cats", i))
	}
	text.WriteString("\n \n" + eventLine("dogs", 1) + eventLine("cats", 1))
	all := chunksOf(t, text.String(), "", "")
	var sizes []int
	var topics []string
	for _, c := range all {
		sizes, topics = append(sizes, len(c.events)), append(topics, c.topic)
	}
	assert.Equal(t, []int{client.MaxBulk, 2, 1, 1}, sizes)
	assert.Equal(t, []string{"cats", "cats", "dogs", "cats"}, topics)
	assert.Equal(t, []int{client.MaxBulk + 1, client.MaxBulk + 2}, all[1].lines)
	assert.Equal(t, []int{client.MaxBulk + 5}, all[2].lines, "empty lines count")
}

// TestALineIsAnEventAsTheAPITakesIt, in all the ways in which that takes numbers and null.
func TestALineIsAnEventAsTheAPITakesIt(t *testing.T) {
	event := func(more string) string {
		return `{"topic":"cats","type":"update","url":"https://x.example/1"` + more + "}\n"
	}
	for more, want := range map[string]int64{
		`,"timestamp":1795302000000`: 1795302000000, `,"timestamp":1795302000000.0`: 1795302000000, `,"timestamp":1.795302e12`: 1795302000000,
		`,"timestamp":0`: 0, `,"timestamp":-7.00`: -7, `, "timestamp" : 70e-1 `: 7,
	} {
		events := chunksOf(t, event(more), "", "")[0].events
		assert.True(t, time.UnixMilli(want).Equal(events[0].Timestamp), "%s: %v", more, events[0].Timestamp)
	}
	for _, more := range []string{"", `,"timestamp":null`, `,"data":null`} {
		assert.Zero(t, chunksOf(t, event(more), "", "")[0].events[0].Timestamp, more)
	}
	assert.Len(t, chunksOf(t, "\ufeff"+event("")+"\r\n"+event(""), "", "")[0].events, 2, "a byte order mark")
	for _, text := range []string{event(`,"timestamp":1.5`), event(`,"timestamp":"1"`), event(`,"timestamp":1e19`), event(`,"timestamp":true`), event("") + "\ufeff" + event("")} {
		_, err := newChunker(strings.NewReader(text), "", "").read()
		assert.Error(t, err, text)
	}
}

func TestChunksStayBelowTheBusLimit(t *testing.T) {
	// Each of these characters takes 3 bytes in the file and 6 when it is written anew.
	line := `{"type":"noop","url":"https://x.example/","data":"` + strings.Repeat("\u2028", 1000) + `"}` + "\n"
	all := chunksOf(t, strings.Repeat(line, client.MaxBulk), "cats", "")
	require.Greater(t, len(all), 1)
	for _, c := range all {
		size := 2
		for _, event := range c.events {
			text, err := event.MarshalJSON()
			require.NoError(t, err)
			size += len(text)
		}
		assert.Less(t, size, client.MaxBulkBytes)
	}
	reader := newChunker(strings.NewReader(eventLine("cats", 1)+strings.Repeat(" ", maxChunkBytes+1)), "", "")
	_, err := reader.read()
	assert.ErrorContains(t, err, "line 2: has more than 524288 bytes")
}

func TestAChunksKeyIsThatOfItsLinesAndItsPlace(t *testing.T) {
	same := strings.Repeat(eventLine("cats", 1), client.MaxBulk)
	first := chunksOf(t, same+same, "", "")
	require.Len(t, first, 2)
	keys := map[string]string{"first": first[0].key(), "the same lines further on": first[1].key()}
	keys["another name"] = chunksOf(t, same, "", "again")[0].key()
	line := `{"type":"noop","url":"https://x.example/"}`
	keys["a topic"] = chunksOf(t, line, "cats", "")[0].key()
	keys["another topic"] = chunksOf(t, line, "dogs", "")[0].key()
	keys["one line more"] = chunksOf(t, same+eventLine("dogs", 1), "", "")[1].key()
	seen := map[string]string{}
	for what, key := range keys {
		assert.Regexp(t, `^[0-9a-f]{64}$`, key)
		assert.Empty(t, seen[key], what)
		seen[key] = what
	}
	assert.Equal(t, keys["first"], chunksOf(t, same, "", "")[0].key(), "what comes after does not matter")
	assert.Equal(t, keys["a topic"], chunksOf(t, "\n"+line+"\r\n\n", "cats", "")[0].key(), "nor do line ends")
}

// TestAKilledLoadIsFinishedByASecondRun kills a load with SIGKILL, twice, and then lets it run to
// its end.
func TestAKilledLoadIsFinishedByASecondRun(t *testing.T) {
	const events = 12_000
	b := startBus(t)
	token := b.addClient(t, "warehouse")
	err := b.connect(t, token).Subscribe(t.Context(), client.Subscription{Topics: []string{"widgets", "parcels"}, Callback: "https://x.invalid/", Max: 10_000})
	require.NoError(t, err)
	var text bytes.Buffer
	for i := range events { // the topics change from time to time, and some chunks are alike
		text.WriteString(eventLine([]string{"widgets", "parcels"}[i/1500%2], i%500))
	}
	file := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))

	program := filepath.Join(installRtm(t), "rtm")
	for _, kill := range []struct {
		request int64
		stored  bool
		counted int
	}{
		{4, false, 2500}, // the chunks have 1000 and 500 events in turn
		{11, true, 8500},
	} {
		url, reached := b.stuckAt(t, kill.request, kill.stored)
		load := exec.CommandContext(t.Context(), program, "pub", "--file", file, "-b", url, "-t", token)
		require.NoError(t, load.Start())
		select {
		case <-reached:
		case <-time.After(soon):
			t.Error("it does not get so far")
		}
		require.NoError(t, load.Process.Kill())
		require.Error(t, load.Wait(), "it ended before it was killed")
		require.Equal(t, kill.counted, b.counted(t))
	}
	for range 2 {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"pub", "--file", file, "-b", b.url, "-t", token}, &stdout, &stderr)
		require.Equal(t, app.ExitOK, status, stderr.String())
		assert.Empty(t, stdout.String()+stderr.String())
		assert.Equal(t, events, b.counted(t), "each event is stored once")
	}
	all, err := b.connect(t, token).Subscriptions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.EqualValues(t, events, all[0].Queued+all[0].Sent)
}

// stuckAt is a proxy of the bus that does not answer from one request on; the channel is closed as
// soon as that has come. It has reached the bus if it is to be stored, so that only the answer is
// lost.
func (b *testBus) stuckAt(t *testing.T, request int64, stored bool) (proxyURL string, reached <-chan struct{}) {
	var requests atomic.Int64
	came := make(chan struct{})
	proxyURL = b.front(t, func(w http.ResponseWriter, r *http.Request, toBus http.Handler) {
		n := requests.Add(1)
		switch {
		case n < request:
			toBus.ServeHTTP(w, r)
			return
		case n == request && stored:
			toBus.ServeHTTP(httptest.NewRecorder(), r)
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
		if n == request {
			close(came)
		}
		hang(w, r)
	})
	return proxyURL, came
}

// front is a proxy of the bus that has each request handled, which may hand it on.
func (b *testBus) front(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, toBus http.Handler)) (proxyURL string) {
	t.Helper()
	base, err := url.Parse(b.url)
	require.NoError(t, err)
	toBus := httputil.NewSingleHostReverseProxy(base)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, toBus) }))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// counted is how many events the bus has received.
func (b *testBus) counted(t testing.TB) (events int) {
	for _, topic := range []string{"widgets", "parcels"} {
		n, _ := strconv.Atoi(b.redis.Raw.HGet(t.Context(), "topic:"+topic, "counter").Val())
		events += n
	}
	return events
}

// TestALoadCanBeStopped presses Ctrl-C while the standard input says nothing.
func TestALoadCanBeStopped(t *testing.T) {
	b := startBus(t)
	token := b.addClient(t, "warehouse")
	input, writer := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{client: b.connect(t, token), stderr: io.Discard}
	ended := make(chan error)
	go func() { ended <- l.run(ctx, input) }()
	// The start of the third chunk shows that the second is complete. The start of the second shows
	// that the first is answered.
	_, err := io.WriteString(writer, eventLine("widgets", 1)+eventLine("parcels", 1)+eventLine("widgets", 2))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.counted(t) == 2 }, soon, time.Millisecond)
	stop()
	assert.Regexp(t, "^stopped; the first [12] events are published: run it again to go on, which within 24 hours adds none of them twice$", (<-ended).Error())
	require.NoError(t, writer.Close())

	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	assert.EqualError(t, l.run(ctx, file), "stopped; nothing was published")
}
