package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrClosed is returned by a [Publisher] after Close.
var ErrClosed = errors.New("the publisher is closed")

// Publisher publishes in the background. Events of one topic are published in order. While a
// request is under way the events that come in wait, and the next request takes up to [MaxBulk] of
// them; a single event is sent at once. It is safe for concurrent use.
//
// While the bus is unavailable the publisher keeps trying, and Publish blocks once the queue is
// full. Events are lost if the bus refuses them or the publisher is closed too early: see
// [WithLostHandler].
type Publisher struct {
	client *Client
	lost   func([]Event, error)
	// slots has one element for each event that waits or is being sent.
	slots chan struct{}
	// closing is closed when no more events are taken.
	closing chan struct{}
	// sending is the context of all requests. It ends with the context of Close.
	sending context.Context
	giveUp  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	// lanes has the topics for which events wait or are being sent. Each has a goroutine, which
	// draining counts.
	lanes    map[string]*lane
	draining sync.WaitGroup
	// losses counts lost events; firstLoss is the reason of the first.
	losses    int
	firstLoss error
}

// lane is the queue of a topic.
type lane struct{ waiting []queued }

// queued is an event and its JSON.
type queued struct {
	event Event
	json  []byte
}

// PublisherOption changes how a [Publisher] works.
type PublisherOption func(*Publisher)

// WithQueue sets how many events may wait. The default is 10,000.
func WithQueue(events int) PublisherOption {
	return func(p *Publisher) { p.slots = make(chan struct{}, max(events, 1)) }
}

// WithLostHandler calls a function with the events of one topic that will not be published, and
// with the reason. Calls for several topics may overlap. By default losses are logged with
// [slog.Default].
func WithLostHandler(lost func(events []Event, err error)) PublisherOption {
	return func(p *Publisher) { p.lost = lost }
}

// NewPublisher returns a publisher, which the caller must close.
func NewPublisher(c *Client, options ...PublisherOption) *Publisher {
	p := &Publisher{client: c, lost: logLoss, closing: make(chan struct{}), lanes: map[string]*lane{}}
	p.sending, p.giveUp = context.WithCancelCause(context.Background())
	WithQueue(10_000)(p)
	for _, option := range options {
		option(p)
	}
	return p
}

func logLoss(events []Event, err error) {
	slog.Error("events were not published", "topic", events[0].Topic, "events", len(events), "error", err)
}

// Publish queues an event, without waiting for the bus. While the queue is full it waits, until the
// context is done. It returns [ErrClosed] after Close.
func (p *Publisher) Publish(ctx context.Context, event Event) error {
	text, err := event.published()
	switch {
	case err != nil:
		return fmt.Errorf("publish to %s: %w", event.Topic, err)
	case event.Topic == "":
		return errors.New("publish: the event has no topic")
	case len(text) > maxEventBytes:
		return fmt.Errorf("publish to %s: the event has %d bytes; it may have %d at most", event.Topic, len(text), maxEventBytes)
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.slots
		return ErrClosed
	}
	l := p.lanes[event.Topic]
	if l == nil {
		l = &lane{}
		p.lanes[event.Topic] = l
		p.draining.Go(func() { p.drain(event.Topic, l) })
	}
	l.waiting = append(l.waiting, queued{event, text})
	return nil
}

// maxEventBytes is the limit of the JSON of one event, so that an array of it fits into a request.
const maxEventBytes = MaxBulkBytes - 2

// Close takes no more events, and waits until all are published. If the context is done first, the
// rest is reported as lost, with the context's error, although the bus may have stored the last
// request. Close returns an error if any event was ever lost.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	p.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { p.giveUp(ctx.Err()) })
	p.draining.Wait()
	stop()
	p.giveUp(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.losses > 0 {
		return fmt.Errorf("%d events were not published; the first: %w", p.losses, p.firstLoss)
	}
	return nil
}

// drain publishes a lane until it is empty.
func (p *Publisher) drain(topic string, l *lane) {
	for {
		batch := p.take(topic, l)
		if batch == nil {
			return
		}
		taken := len(batch)
		p.publish(topic, batch)
		for range taken {
			<-p.slots
		}
	}
}

// take removes the events for one request from the head of a lane. It deletes an empty lane.
func (p *Publisher) take(topic string, l *lane) []queued {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.waiting) == 0 {
		delete(p.lanes, topic)
		return nil
	}
	n, size := 0, 2
	for n < len(l.waiting) && n < MaxBulk {
		size += len(l.waiting[n].json) + 1
		if n > 0 && size > MaxBulkBytes {
			break
		}
		n++
	}
	batch := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return batch
}

// publish publishes events, in one request if none of them is refused. It returns when all are
// stored or lost.
func (p *Publisher) publish(topic string, batch []queued) {
	for len(batch) > 0 {
		err := p.send(topic, batch)
		if err == nil {
			return
		}
		refused, _ := errors.AsType[*Error](err)
		switch wrong := refusedEvent(refused, len(batch)); {
		case wrong >= 0: // publish the others without it
			p.lose(batch[wrong:wrong+1], err)
			batch = slices.Delete(batch, wrong, wrong+1)
		case refused != nil && refused.Status == http.StatusRequestEntityTooLarge && len(batch) > 1:
			half := len(batch) / 2
			p.publish(topic, batch[:half:half])
			batch = batch[half:]
		default:
			p.lose(batch, err)
			return
		}
	}
}

// send sends events until they are stored or refused, or the publisher's context ends.
func (p *Publisher) send(topic string, batch []queued) error {
	texts := make([][]byte, len(batch))
	for i, q := range batch {
		texts[i] = q.json
	}
	body, key := array(texts), []PublishOption{WithIdempotencyKey(rand.Text()), WithIdempotencyTTL(retryTTL)}
	for {
		err := p.client.publish(p.sending, topic, body, key)
		switch {
		case err == nil:
			return nil
		case p.sending.Err() != nil:
			return fmt.Errorf("closed too early (%w): %w", context.Cause(p.sending), err)
		case !IsTemporary(err):
			return err
		}
		pause := p.client.maxPause
		if refused, ok := errors.AsType[*Error](err); ok {
			pause = max(pause, min(refused.RetryAfter, maxRetryAfter))
		}
		sleep(p.sending, pause)
	}
}

// refusedEvent is the index of the event that was refused, -1 if the response names none.
func refusedEvent(refused *Error, events int) int {
	if refused == nil || refused.Status != http.StatusBadRequest {
		return -1
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(refused.Pointer, "/"), "/")
	if n, err := strconv.Atoi(first); err == nil && n >= 0 && n < events {
		return n
	}
	return -1
}

func (p *Publisher) lose(batch []queued, err error) {
	events := make([]Event, len(batch))
	for i, q := range batch {
		events[i] = q.event
	}
	p.mu.Lock()
	p.losses += len(events)
	if p.firstLoss == nil {
		p.firstLoss = err
	}
	p.mu.Unlock()
	p.lost(events, err)
}
