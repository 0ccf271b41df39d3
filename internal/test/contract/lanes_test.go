package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// lanedEndpoint notes, of each account, the events that it acknowledged, and how many deliveries
// were under way at once. It holds the first until another has come.
type lanedEndpoint struct {
	mu           sync.Mutex
	accounts     map[string][]int
	underWay     map[string]bool // accounts
	now, most    int
	twice        bool // an account was in two deliveries at once
	other        chan struct{}
	bad          int // an event that is refused, with whatever comes with it; 0 for none
	badDelivered int // how often it came
}

func (e *lanedEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var events []struct {
		Data struct {
			Account string
			Number  int
		}
	}
	if json.NewDecoder(r.Body).Decode(&events) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.now++
	e.most = max(e.most, e.now)
	if e.now == 2 && e.other != nil {
		close(e.other)
		e.other = nil
	}
	other, refuse := e.other, false
	accounts := map[string]bool{}
	for _, event := range events {
		accounts[event.Data.Account] = true
		refuse = refuse || event.Data.Number == e.bad
	}
	for account := range accounts {
		e.twice = e.twice || e.underWay[account]
		e.underWay[account] = true
	}
	e.mu.Unlock()
	if other != nil {
		select {
		case <-other:
		case <-time.After(bustest.WaitTimeout):
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now--
	for account := range accounts {
		delete(e.underWay, account)
	}
	if refuse {
		e.badDelivered++
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, event := range events {
		e.accounts[event.Data.Account] = append(e.accounts[event.Data.Account], event.Data.Number)
	}
}

// TestEventsOfAnAccountComeInOrder delivers in four lanes; then in strict order, with an event that
// is refused until it is a dead letter.
func TestEventsOfAnAccountComeInOrder(t *testing.T) {
	t.Parallel()
	const accounts, events = 40, 400
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
	endpoint := &lanedEndpoint{accounts: map[string][]int{}, underWay: map[string]bool{}, other: make(chan struct{})}
	server := httptest.NewTLSServer(endpoint)
	defer server.Close()
	b.Call(shop, "POST", "/subscription", fmt.Sprintf(
		`{"topics":["widgets"],"callback":%q,"timeout":0,"max":7,"lanes":4,"order_key":"/data/account"}`, server.URL+"/"), 204)
	want := map[string][]int{}
	publish := func(first int) {
		var all []string
		for number := first; number < first+events; number++ {
			account := fmt.Sprint("account ", number%accounts)
			want[account] = append(want[account], number)
			all = append(all, fmt.Sprintf(
				`{"type":"update","url":"https://x.example/%d","data":{"account":%q,"number":%d}}`, number%3, account, number))
		}
		for part := range slices.Chunk(all, 50) {
			b.Call(publisher, "POST", "/topics/widgets", "["+strings.Join(part, ",")+"]", 200)
		}
	}
	publish(1)
	b.Drain()
	endpoint.mu.Lock()
	assert.Equal(t, want, endpoint.accounts)
	assert.False(t, endpoint.twice)
	assert.Greater(t, endpoint.most, 1)
	assert.LessOrEqual(t, endpoint.most, 4)

	const bad = 1234
	endpoint.bad = bad
	endpoint.mu.Unlock()

	b.Call(shop, "PATCH", "/subscriber", `{"strict_order":true,"dead_letters":{"attempts":3}}`, 204)
	publish(1001)
	b.Drain()
	account := fmt.Sprint("account ", bad%accounts)
	endpoint.mu.Lock()
	defer endpoint.mu.Unlock()
	want[account] = slices.DeleteFunc(want[account], func(number int) bool { return number == bad })
	assert.Equal(t, want, endpoint.accounts)
	assert.GreaterOrEqual(t, endpoint.badDelivered, 3, "it dies at the third attempt, of a batch of it alone")
	letters := b.Call(shop, "GET", "/subscriber/dead_letters", "", 200)
	assert.Equal(t, 1, strings.Count(letters, `"reason":"attempts"`), letters)
	require.Contains(t, letters, `"events":1,`)
	b.RequireNothingLeft()
}
