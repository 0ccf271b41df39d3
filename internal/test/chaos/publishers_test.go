package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/test/bustest"
)

// publishers publish while all fails. The first two are one client with two tokens, and share a
// topic.
var publishers = []struct{ token, client, topic string }{
	{"warehouse--1", "warehouse", "widgets"},
	{"warehouse--2", "warehouse", "widgets"},
	{"shop--1", "shop", "orders"},
	{"office--1", "office", "letters"},
}

// numbersPerPublisher separates the numbers of the publishers' events.
const numbersPerPublisher = 1_000_000

// How publishers publish.
const (
	publishTimeout      = time.Second
	publishPause        = 20 * time.Millisecond  // at most, between requests
	publishBackoff      = 100 * time.Millisecond // at most, between tries
	maxEventsPerRequest = 5                      // events in one request
)

// chaoticPublisher publishes numbered events, each request again and again until it is
// acknowledged.
type chaoticPublisher struct {
	number int
	apis   []string
	client *http.Client
	random *rand.Rand
	ledger *ledger
}

// run publishes until stop is closed and the request under way is acknowledged, or the context is
// done.
func (p *chaoticPublisher) run(ctx context.Context, stop <-chan struct{}) {
	next := p.number * numbersPerPublisher
	for request := 0; ; request++ {
		var numbers []int
		for range 1 + p.random.IntN(maxEventsPerRequest) {
			numbers = append(numbers, next)
			next++
		}
		p.ledger.publishing(publishers[p.number].topic, numbers)
		if !p.publish(ctx, strconv.Itoa(request), eventsBody(numbers)) {
			return
		}
		p.ledger.acknowledge(numbers)
		select {
		case <-stop:
			return
		case <-time.After(p.upTo(publishPause)):
		}
	}
}

// publish sends a request until it is acknowledged. It is false if the context was done before.
func (p *chaoticPublisher) publish(ctx context.Context, key, body string) bool {
	for try := p.random.IntN(len(p.apis)); ; try++ {
		if p.try(ctx, p.apis[try%len(p.apis)], key, body) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(p.upTo(publishBackoff)):
		}
	}
}

func (p *chaoticPublisher) try(ctx context.Context, api, key, body string) (acknowledged bool) {
	who := publishers[p.number]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/topics/"+who.topic, strings.NewReader(body))
	if err != nil {
		p.ledger.complain("a publish cannot be sent: %v", err)
		return false
	}
	req.SetBasicAuth(who.token, "x")
	req.Header.Set("Idempotency-Key", who.token+"/"+key)
	resp, err := p.client.Do(req)
	if err != nil {
		p.ledger.refuse()
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	switch resp.StatusCode {
	case http.StatusOK:
		return true
	case http.StatusServiceUnavailable:
		p.ledger.refuse()
	default:
		p.ledger.complain("a publish was answered %d %s", resp.StatusCode, text)
	}
	return false
}

func (p *chaoticPublisher) upTo(most time.Duration) time.Duration {
	return time.Duration(p.random.Int64N(int64(most)))
}

// orderKeys is how many order keys a publisher's events have.
const orderKeys = 5

// orderKey is the order key of an event.
func orderKey(number int) int { return number % orderKeys }

func eventBody(number int) string {
	return fmt.Sprintf(`%s,"data":{"key":%d}}`, strings.TrimSuffix(bustest.EventBody(number), "}"), orderKey(number))
}

func eventsBody(numbers []int) string {
	var events []string
	for _, number := range numbers {
		events = append(events, eventBody(number))
	}
	if len(events) == 1 {
		return events[0]
	}
	return "[" + strings.Join(events, ",") + "]"
}
