package bustest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Subscriber is an HTTPS endpoint that keeps the events it acknowledged.
type Subscriber struct {
	Token, URL string
	// Refuse, if set, reports whether a delivery is refused with 503. Deliveries are counted from
	// 1.
	Refuse func(deliveries int) bool

	mu         sync.Mutex
	respond    func(numbers []int) (status int)
	deliveries int
	batches    []Batch
}

// Batch is a batch of events that was acknowledged.
type Batch struct {
	ReceivedAt time.Time
	Topics     []string
	Numbers    []int
}

// NewSubscriber starts an endpoint for a client. It ends with the test.
func NewSubscriber(t testing.TB, token string) *Subscriber {
	t.Helper()
	s := &Subscriber{Token: token}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/"
	return s
}

// Respond sets which status a batch of numbered events gets from now on.
func (s *Subscriber) Respond(respond func(numbers []int) (status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = respond
}

// Subscribe subscribes the endpoint to topics. The timeout is in ms.
func (s *Subscriber) Subscribe(b *Bus, timeout, maxEvents int, topics ...string) {
	b.t.Helper()
	list, err := json.Marshal(topics)
	require.NoError(b.t, err)
	b.Call(s.Token, "POST", "/subscription", fmt.Sprintf(`{"topics":%s,"callback":%q,"uuid":%q,"timeout":%d,"max":%d}`,
		list, s.URL, s.uuid(), timeout, maxEvents), http.StatusNoContent)
}

func (s *Subscriber) uuid() string { return "uuid of " + s.Token }

// ServeHTTP receives a delivery.
func (s *Subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	batch, err := s.ReadBatch(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries++
	if err != nil || s.Refuse != nil && s.Refuse(s.deliveries) {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	if s.respond != nil {
		if status := s.respond(batch.Numbers); status != http.StatusOK {
			http.Error(w, "no", status)
			return
		}
	}
	s.batches = append(s.batches, batch)
}

// ReadBatch reads a delivery. The error is not nil if its uuid is not the subscriber's, or its body
// is not a list of numbered events.
func (s *Subscriber) ReadBatch(r *http.Request) (Batch, error) {
	batch := Batch{ReceivedAt: time.Now()}
	if user, _, _ := r.BasicAuth(); user != s.uuid() {
		return batch, errors.New("wrong uuid")
	}
	var events []struct{ Topic, URL string }
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		return batch, err
	}
	for _, event := range events {
		number, err := strconv.Atoi(strings.TrimPrefix(event.URL, eventURL))
		if err != nil {
			return batch, err
		}
		batch.Numbers = append(batch.Numbers, number)
		batch.Topics = append(batch.Topics, event.Topic)
	}
	return batch, nil
}

// Deliveries is how many deliveries have arrived, refused ones too.
func (s *Subscriber) Deliveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries
}

// Acknowledged returns the batches acknowledged so far, in order.
func (s *Subscriber) Acknowledged() []Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// Numbers returns the numbers of all events acknowledged so far, in order.
func (s *Subscriber) Numbers() (numbers []int) {
	for _, batch := range s.Acknowledged() {
		numbers = append(numbers, batch.Numbers...)
	}
	return numbers
}

// NumbersOf returns the numbers of a topic's events acknowledged so far, in order.
func (s *Subscriber) NumbersOf(topic string) (numbers []int) {
	for _, batch := range s.Acknowledged() {
		for i, number := range batch.Numbers {
			if batch.Topics[i] == topic {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}

// WaitFor waits until so many events have been acknowledged, and returns the batches.
func (s *Subscriber) WaitFor(t testing.TB, events int) []Batch {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.Numbers()) >= events }, WaitTimeout, time.Millisecond,
		"%s has acknowledged too few events", s.Token)
	return s.Acknowledged()
}
