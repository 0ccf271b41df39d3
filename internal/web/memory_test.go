package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// slowSenders is the number of connections that send a body and never end it. It is lower with the
// race detector, which slows down each.
var slowSenders = map[bool]int{false: 2000, true: 300}[rdbtest.RaceDetector]

// inMemory returns how many bytes of heap and stacks are in use.
func inMemory() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// slowSend opens a connection, announces a body of 1 MiB, waits until the server reads it, and
// sends some bytes of it. Status is called with the status of the response, if there is one.
func slowSend(t *testing.T, address string, bytes int, status func(int)) {
	conn, err := net.Dial("tcp", address)
	if !assert.NoError(t, err) {
		return
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprint(conn, "POST /topics/a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2UtLTE6\r\nContent-Length: 1048576\r\nExpect: 100-continue\r\n\r\n")
	responses := bufio.NewReaderSize(conn, 64)
	resp, err := http.ReadResponse(responses, nil)
	if err == nil && resp.StatusCode == http.StatusContinue {
		_, _ = conn.Write([]byte(strings.Repeat(" ", bytes)))
		go func() {
			if resp, err := http.ReadResponse(responses, nil); err == nil {
				status(resp.StatusCode)
			}
		}()
		return
	}
	if assert.NoError(t, err) {
		status(resp.StatusCode)
	}
}

// sendAllSlowly opens slowSenders connections that send some bytes each.
func sendAllSlowly(t *testing.T, address string, bytes int, status func(int)) {
	var senders sync.WaitGroup
	turns := make(chan bool, 50)
	for range slowSenders {
		turns <- true
		senders.Go(func() {
			slowSend(t, address, bytes, status)
			<-turns
		})
	}
	senders.Wait()
}

func TestSlowSendersTakeAsMuchMemoryAsTheySend(t *testing.T) {
	rdbtest.OneRedisOnly(t, "what it measures is over before Redis is asked")
	a := newAPI(t, rdbtest.Embedded(t))
	address := strings.TrimPrefix(a.Run(), "http://")
	before := inMemory()
	sendAllSlowly(t, address, 1, func(int) {})
	took := inMemory() - before
	t.Logf("%d connections that announce 2 GiB and send nothing take %d KiB each", slowSenders, took/slowSenders>>10)
	assert.Less(t, took, slowSenders*64<<10)
}

func TestBodiesUnderWayShareABudget(t *testing.T) {
	rdbtest.OneRedisOnly(t, "what it measures is over before Redis is asked")
	a := newAPI(t, rdbtest.Embedded(t))
	address := strings.TrimPrefix(a.Run(), "http://")
	before := inMemory()
	var refused atomic.Int64
	sendAllSlowly(t, address, 300_000, func(status int) {
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			refused.Add(1)
		}
	})
	// A sender of 300,000 bytes takes 512 KiB, and all senders of a client may take 16 MiB: 32 at a
	// time. On a slow host they time out before the last ones have finished, and others take their
	// place.
	require.Eventually(t, func() bool { return refused.Load() >= int64(slowSenders)/2 }, time.Minute, 10*time.Millisecond)
	took := inMemory() - before
	t.Logf("%d connections that send 600 MB take %d MiB; %d are refused", slowSenders, took>>20, refused.Load())
	assert.Less(t, took, 200<<20)
	a.RequireDone(alice, "POST", "/topics/a", webtest.EventText(1))
}

func TestBodiesBeyondTheBudget(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.BodyBudget = 1 << 20 })
	long := a.Do(alice, "POST", "/topics/a", "["+strings.Repeat(" ", 1<<20)+"]")
	assert.Equal(t, 503, long.Status)
	assert.Equal(t, "1", long.Header.Get("Retry-After"))
	assert.Equal(t, "close", long.Header.Get("Connection"))
	for range rdbtest.Fewer(100) { // all memory is released, whatever the response was
		a.Do(alice, "POST", "/topics/a", "["+strings.Repeat(" ", 300<<10))
	}
	a.RequireDone(alice, "POST", "/topics/a", webtest.EventsText(1, 1000))
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["a"],"callback":"https://x.example/"}`)
	assert.Equal(t, 201, a.Do(rootKey, "POST", "/api_tokens", `{"name":"x"}`).Status)
}

// TestTheLargestAllowedValuesFitIntoABody sends maximum values in their longest JSON encoding.
func TestTheLargestAllowedValuesFitIntoABody(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	url := "https://x.example/" + strings.Repeat(`a`, 1024-len("https://x.example/"))
	event := `{"type":"create","url":"` + url + `","timestamp":1795302000000.0,"data":"` + strings.Repeat(`\u0001`, 62) + `"}`
	a.RequireDone(alice, "POST", "/topics/a", "["+strings.Repeat(event+",", 999)+event+"]")

	var topics []string
	for i := range 1000 {
		topics = append(topics, fmt.Sprintf(`"%s%c%c%c"`, strings.Repeat("a", 61), 'a'+i%10, 'a'+i/10%10, 'a'+i/100))
	}
	a.RequireDone(bob, "POST", "/subscription", `{"callback":"https://x.example/","topics":[`+strings.Join(topics, ",")+`]}`)

	large := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.MaxEventData = 65536 })
	data := `{"type":"create","url":"https://x.example/","data":"` + strings.Repeat(`\u0001`, 65536-3) + `"}`
	large.RequireDone(alice, "POST", "/topics/a", data)
	assert.Equal(t, 413, large.Do(alice, "POST", "/topics/a", data+strings.Repeat(" ", 65<<10)).Status)
}
