package chaos

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/test/bustest"
)

// subscribers receive while all fails; all but the first and the last misbehave, each in its way.
var subscribers = []struct {
	name       string
	timeout    int // ms
	max        int
	topics     []string
	misbehaves misbehaviour
	share      int    // of deliveries that it misbehaves at, in %
	options    string // JSON
}{
	{"healthy", 0, 10, []string{"widgets", "orders", "letters"}, nil, 0, ""},
	{"failing", 50, 5, []string{"widgets", "orders"}, fail, 20, ""},
	{"hanging", 100, 100, []string{"widgets", "letters"}, hang, 5, ""},
	{"resetting", 20, 3, []string{"orders", "letters"}, resetConnection, 10, ""},
	{"babbling", 200, 20, []string{"widgets"}, babble, 20, ""},
	{"partial", 30, 8, []string{"widgets", "letters"}, takeSome, 30, `{"partial":true}`},
	{"strict", 300, 60, []string{"orders", "letters"}, takeSome, 30,
		`{"partial":true,"strict_order":true,"max_bytes":1024}`},
	{paused, 40, 6, []string{"widgets"}, fail, 10, `{"log_attempts":"all"}`},
	{laned, 50, 5, []string{"widgets", "orders"}, fail, 10, `{"lanes":4,"order_key":"/data/key"}`},
	{strictlyLaned, 30, 8, []string{"widgets", "letters"}, takeSome, 30,
		`{"partial":true,"strict_order":true,"lanes":3,"order_key":"/data/key"}`},
	{replayed, 100, 1, []string{"letters"}, nil, 0, ""},
}

// tokenOf is the token of a subscriber.
func tokenOf(name string) bus.Token { return bus.Token(name + "--1") }

// Subscribers to whom something happens: one is paused, the lanes of two change, and one has the
// history of its topic replayed.
const (
	paused        = "paused"
	laned         = "laned"
	strictlyLaned = "strictly-laned"
	replayed      = "replayed"
)

// misbehaviour answers a delivery without acknowledging it, or not all of it: how many events, from
// the first, it returns. Choice is by chance.
type misbehaviour func(s *chaoticSubscriber, w http.ResponseWriter, r *http.Request, events, choice int) int

// takeSome answers with a receipt.
func takeSome(_ *chaoticSubscriber, w http.ResponseWriter, _ *http.Request, events, choice int) int {
	taken := choice % events
	w.WriteHeader(http.StatusMultiStatus)
	_, _ = fmt.Fprintf(w, `{"retry_from":%d}`, taken)
	return taken
}

func fail(_ *chaoticSubscriber, w http.ResponseWriter, _ *http.Request, _, choice int) int {
	if choice%2 == 0 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return 0
	}
	w.WriteHeader(http.StatusInternalServerError)
	return 0
}

func hang(s *chaoticSubscriber, _ http.ResponseWriter, r *http.Request, _, _ int) int {
	select {
	case <-r.Context().Done():
	case <-time.After(2 * chaosTimeout):
	case <-s.well:
	}
	panic(http.ErrAbortHandler)
}

func resetConnection(_ *chaoticSubscriber, w http.ResponseWriter, _ *http.Request, _, _ int) int {
	connection := hijack(w).(*tls.Conn).NetConn().(*net.TCPConn)
	_ = connection.SetLinger(0)
	_ = connection.Close()
	return 0
}

func babble(_ *chaoticSubscriber, w http.ResponseWriter, _ *http.Request, _, choice int) int {
	if choice%2 == 0 {
		w.Header().Set("X-Long", strings.Repeat("long ", 1<<20/5))
		return 0 // 200, were it not for the header
	}
	connection := hijack(w)
	_, _ = io.WriteString(connection, "how do you do\r\n\r\n")
	_ = connection.Close()
	return 0
}

func hijack(w http.ResponseWriter) net.Conn {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // HTTP/1 can be hijacked
	}
	return connection
}

// chaoticSubscriber is an HTTPS endpoint that misbehaves now and then, and records its deliveries.
type chaoticSubscriber struct {
	bustest.Subscriber
	number int
	ledger *ledger
	// well is closed when it is to behave.
	well <-chan struct{}

	mu     sync.Mutex
	random *rand.Rand
}

// serveTLS starts an endpoint, and returns its URL.
func serveTLS(t *testing.T, handler http.Handler) string {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log every cut
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func (s *chaoticSubscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &attempt{arrived: time.Now()}
	batch, err := s.ReadBatch(r)
	if err != nil { // it was cut off on its way
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.batch, a.numbers = inHeader(batchInHeader, r), batch.Numbers
	self := subscribers[s.number]
	of := self.name
	if replay := inHeader(replayInHeader, r); replay != "" {
		of = replay
	}
	if misbehaves, choice := s.draw(); misbehaves {
		s.ledger.attempt(of, a)
		taken := self.misbehaves(s, w, r, len(batch.Numbers), choice)
		if taken > 0 {
			s.ledger.attempt(of, &attempt{batch: a.batch, arrived: a.arrived, numbers: batch.Numbers[:taken], acknowledged: time.Now()})
		}
		return
	}
	if self.name == "babbling" {
		w.Header().Set("Content-Length", "1000") // which is not true, but only the status counts
		_, _ = io.WriteString(w, "{broken")
	}
	a.acknowledged = time.Now()
	s.ledger.attempt(of, a)
}

// The UIDs of the batch, and of the replay that it is of, if it is of one.
var (
	batchInHeader  = regexp.MustCompile(`batch="([^"]+)"`)
	replayInHeader = regexp.MustCompile(`replay="([^"]+)"`)
)

// inHeader is the matching part of a delivery's header; empty if there is none.
func inHeader(what *regexp.Regexp, r *http.Request) string {
	if found := what.FindStringSubmatch(r.Header.Get("Routemaster-Delivery")); found != nil {
		return found[1]
	}
	return ""
}

// draw decides whether to misbehave, and how.
func (s *chaoticSubscriber) draw() (misbehaves bool, choice int) {
	select {
	case <-s.well:
		return false, 0
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(100) < subscribers[s.number].share, s.random.IntN(100)
}
