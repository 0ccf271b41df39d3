package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
)

// site is what a scenario works with: a bus, a receiver, and what the machine tells about them.
type site struct {
	size   size
	report *Report
	table  *Table
	// own is nil for somebody else's bus; helper is its receiver then.
	own      *machine
	helper   *process
	bus      busAPI
	receiver receiverAPI
	// callback is where the bus reaches the receiver; empty if it does not.
	callback string
	// publisher and subscribers are tokens.
	publisher   string
	subscribers []string
	// packed is the size of one event as Redis holds it, in bytes.
	packed int64
	name   string
	runs   int64
}

// ownSite starts a machine, and lets a publisher in.
func ownSite(ctx context.Context, o Options) (*site, error) {
	m, err := newMachine(ctx, o)
	if err != nil {
		return nil, err
	}
	s := newSite(busAPI{url: m.api, client: newHTTPClient(false)})
	s.own, s.callback = m, m.receiver.Service
	s.receiver = receiverAPI{m.receiver.Control, newHTTPClient(false)}
	if s.publisher, err = s.addToken(ctx, "publisher"); err == nil {
		s.packed, err = s.packedSize(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return s, nil
}

func newSite(bus busAPI) *site {
	return &site{bus: bus, name: letters(rand.Int64N(26*26*26*26), 4)}
}

// letters is a number in letters, as topic names have no digits.
func letters(n int64, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('a' + n%26)
		n /= 26
	}
	return string(text)
}

// addToken lets a client in.
func (s *site) addToken(ctx context.Context, name string) (token string, err error) {
	token = name + "--token"
	return token, s.bus.call(ctx, rootKey, http.MethodPost, "/api_tokens", map[string]string{"name": name, "token": token})
}

// packedSize publishes an event to nobody, and looks how much Redis has of it. All events are of that size.
func (s *site) packedSize(ctx context.Context) (int64, error) {
	run := s.nextRun()
	if err := s.bus.call(ctx, s.publisher, http.MethodPost, "/topics/"+run.topic, json.RawMessage(eventJSON)); err != nil {
		return 0, err
	}
	conn, err := dialRedis(ctx, s.own.redis)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	size, err := conn.integer("HSTRLEN", "topic:"+run.topic, "last_event")
	if err == nil && size == 0 {
		err = errors.New("no event is in Redis where it should be")
	}
	return size, err
}

// run names what belongs to one measurement: nothing of an earlier one is taken for its own.
type run struct{ topic, prefix string }

// path is the callback's path of a subscriber.
func (r run) path(subscriber int) string { return fmt.Sprintf("%s%d", r.prefix, subscriber) }

func (s *site) nextRun() run {
	s.runs++
	name := s.name + letters(s.runs, 3)
	return run{topic: "bench_" + name, prefix: "/" + name + "/"}
}

// trial is how something is measured.
type trial struct {
	publishers, subscribers int
	// array is how many events one request has; 0 is one, not in an array.
	array int
	// most and timeout, in ms, are those of the subscriptions.
	most, timeout int
	// rate is the requests due in a second; 0 is a closed loop.
	rate float64
}

// test is a trial under way.
type test struct {
	trial
	run
	clients []*client
}

// prepare subscribes and connects. The test must be closed.
func (s *site) prepare(ctx context.Context, t trial) (*test, error) {
	run := s.nextRun()
	if err := s.receiver.begin(ctx, run.prefix); err != nil {
		return nil, err
	}
	for i := range t.subscribers {
		if i == len(s.subscribers) {
			token, err := s.addToken(ctx, fmt.Sprintf("subscriber-%d", i))
			if err != nil {
				return nil, err
			}
			s.subscribers = append(s.subscribers, token)
		}
		if err := s.bus.subscribe(ctx, s.subscribers[i], run.topic, s.callback+run.path(i), t.most, t.timeout); err != nil {
			return nil, err
		}
	}
	clients, err := s.clients(ctx, s.bus.url, run.topic, t.publishers, t.array)
	return &test{t, run, clients}, err
}

// clients connects publishers.
func (s *site) clients(ctx context.Context, base, topic string, publishers, array int) (clients []*client, err error) {
	for i := range publishers {
		c, err := newClient(ctx, base, s.bus.insecure, "/topics/"+topic, s.publisher, i, array)
		if err != nil {
			closeAll(clients)
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

// expected is how many events the subscribers are to receive.
func (t *test) expected() int64 { return sent(t.clients) * int64(t.subscribers) }

// perRequest is how many events one request has.
func (t trial) perRequest() int64 { return int64(max(1, t.array)) }

// close ends a test: its topic goes, so that nothing is kept of it on somebody else's bus.
func (s *site) close(ctx context.Context, t *test) {
	closeAll(t.clients)
	if s.own == nil {
		_ = s.bus.call(context.WithoutCancel(ctx), s.publisher, http.MethodDelete, "/topics/"+t.topic, nil)
	}
}
