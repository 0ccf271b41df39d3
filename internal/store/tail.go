package store

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptTailOpen  = newScript("tail_open")
	scriptTailClose = newScript("tail_close")
)

var tailRefusals = map[string]error{"topic unknown": bus.ErrTopicUnknown}

const (
	// maxStreams is the maximum at once, maxStreamsOfClient the maximum of one client.
	maxStreams, maxStreamsOfClient = 100, 20
	// waitingParts is how many publishes a stream keeps for a reader that is slow.
	waitingParts = 256
	// renewInterval is how often the channel of a topic is looked up: it may have changed while the
	// connection was lost.
	renewInterval = 2 * time.Second
	callTimeout   = 2 * time.Second
)

// TailHub streams the events of topics while they are published. It is a view, not a delivery:
// events may be missing, and it counts the missing events that it knows of. It has all streams of a
// process, and one connection for all streams of one topic. It is safe for concurrent use.
//
// While a topic has a stream, the key plans has the UID of a Redis channel for it, and a publish
// sends its first events to that channel in the step that stores them. When no process listens any
// more, that step removes the UID. So a topic without a stream costs nothing.
type TailHub struct {
	stores *Bus
	log    *slog.Logger

	mu      sync.Mutex
	watches map[bus.TopicName]*watch
	// clients have the number of streams of each client, without zeros; streams is their sum.
	clients map[bus.ClientName]int
	streams int
	closed  bool
}

// NewTailHub makes a hub for the topics of a bus.
func NewTailHub(all *Bus, log *slog.Logger) *TailHub {
	return &TailHub{stores: all, log: log, watches: map[bus.TopicName]*watch{}, clients: map[bus.ClientName]int{}}
}

// TailStream gets the events of a topic while they are published.
type TailStream struct {
	hub    *TailHub
	watch  *watch
	client bus.ClientName
	parts  chan TailPart
	// missed counts the events of parts for which there was no room.
	missed atomic.Int64
}

// Parts returns the published parts. It is closed when the hub is, or when the topic was deleted.
func (s *TailStream) Parts() <-chan TailPart { return s.parts }

// Missed returns how many events there were that are in no part, since it was last asked.
func (s *TailStream) Missed() int64 { return s.missed.Swap(0) }

// Open begins to watch a topic for a client. It fails with [bus.ErrTopicUnknown],
// [bus.ErrUnavailable], or [bus.ErrOverloaded] when too many are watched. The stream must be
// closed.
func (h *TailHub) Open(ctx context.Context, topic bus.TopicName, client bus.ClientName) (*TailStream, error) {
	s, isFirst := h.register(topic, client)
	if s == nil {
		return nil, bus.ErrOverloaded
	}
	w := s.watch
	if isFirst {
		calling, cancel := context.WithTimeout(ctx, callTimeout)
		w.err = w.listen(calling)
		cancel()
		if w.err == nil {
			go w.run()
		}
		close(w.ready)
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		s.Close()
		return nil, ctx.Err()
	}
	if w.err != nil {
		s.Close()
		return nil, w.err
	}
	return s, nil
}

// register makes a stream, nil if there are too many, and says whether it is the first of its
// topic: then it has to begin the watch.
func (h *TailHub) register(topic bus.TopicName, client bus.ClientName) (s *TailStream, isFirst bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.streams >= maxStreams || h.clients[client] >= maxStreamsOfClient {
		return nil, false
	}
	w := h.watches[topic]
	if w == nil {
		isFirst = true
		w = &watch{hub: h, topic: topic, redis: h.stores.Home(topic).Partition(), streams: map[*TailStream]bool{}, ready: make(chan struct{})}
		w.ctx, w.stop = context.WithCancel(context.Background())
		h.watches[topic] = w
	}
	s = &TailStream{hub: h, watch: w, client: client, parts: make(chan TailPart, waitingParts)}
	w.streams[s] = true
	h.clients[client]++
	h.streams++
	return s, isFirst
}

// Close ends the stream.
func (s *TailStream) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.watch.streams[s] {
		h.remove(s)
	}
}

// remove removes a stream, and its watch with the last. The hub is locked.
func (h *TailHub) remove(s *TailStream) {
	w := s.watch
	delete(w.streams, s)
	h.streams--
	if h.clients[s.client]--; h.clients[s.client] == 0 {
		delete(h.clients, s.client)
	}
	if len(w.streams) == 0 {
		w.stop()
		if h.watches[w.topic] == w {
			delete(h.watches, w.topic)
		}
	}
}

// end ends the streams of a watch.
func (h *TailHub) end(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range w.streams {
		close(s.parts)
		h.remove(s)
	}
}

// Close ends all streams, and lets none begin.
func (h *TailHub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, w := range h.watches {
		for s := range w.streams {
			close(s.parts)
		}
		clear(w.streams)
		w.stop()
	}
	clear(h.watches)
}

// watch is the state that the streams of one topic share.
type watch struct {
	hub   *TailHub
	topic bus.TopicName
	redis *rdb.Partition
	// streams are guarded by the hub's lock.
	streams map[*TailStream]bool
	// ready is closed when the first stream has begun to listen, or has failed with err.
	ready chan struct{}
	err   error
	// ctx is done when no stream is left.
	ctx  context.Context
	stop context.CancelFunc

	channel  string
	listener *rdb.Listener
}

// listen finds the topic's channel, and subscribes to it unless it has. Then it looks again: a
// publish may have found no listener before, and given the channel up.
func (w *watch) listen(ctx context.Context) error {
	own := w.channel
	if own == "" {
		own = rand.Text()
	}
	for {
		change := w.redis.Change(ctx, scriptTailOpen, string(w.topic), own)
		if err := change.Refusal("watch", tailRefusals); err != nil {
			return err
		}
		if own = change.Text(0); own == w.channel {
			return nil
		}
		listener, err := w.redis.NewListener(ctx, w.redis.Namespace()+"tail:"+own)
		if err != nil {
			return err
		}
		if w.listener != nil {
			_ = w.listener.Close()
		}
		w.channel, w.listener = own, listener
		go listener.Each(w.hand)
	}
}

// run renews the watch until it is stopped.
func (w *watch) run() {
	for w.ctx.Err() == nil {
		select {
		case <-w.ctx.Done():
		case <-time.After(renewInterval):
			calling, cancel := context.WithTimeout(w.ctx, callTimeout)
			if err := w.listen(calling); errors.Is(err, bus.ErrTopicUnknown) {
				w.hub.end(w)
			} else if err != nil && w.ctx.Err() == nil {
				w.hub.log.Debug("could not renew a live tail", "topic", string(w.topic), "error", err)
			}
			cancel()
		}
	}
	_ = w.listener.Close()
	calling, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	// Where this fails, the next publish to the topic ends it.
	_ = w.redis.Run(calling, scriptTailClose, string(w.topic), w.channel).Err()
}

// hand gives a message to all streams.
func (w *watch) hand(text string) {
	part, ok := parseTailPart(text)
	if !ok {
		return
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	for s := range w.streams {
		select {
		case s.parts <- part:
		default:
			s.missed.Add(part.Total)
		}
	}
}
