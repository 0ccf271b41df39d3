// Package livetail shows the events of topics while they are published. It is a view, not a
// delivery: events may be missing, and it counts those that it knows of.
//
// While somebody watches a topic, the plans have the UID of a channel of Redis for it, and a
// publish tells that channel of its first events, in the step that stores them. Where nobody
// listens any more, that step ends it. So a topic that nobody watches costs nothing.
package livetail

import (
	"context"
	"crypto/rand"
	"embed"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptOpen  = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "tail_open"))
	scriptClose = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "tail_close"))
)

var refusals = map[string]error{"topic unknown": bus.ErrTopicUnknown}

const (
	// maxStreams is how many there may be at once.
	maxStreams = 100
	// waitingParts is how many publishes a stream keeps for a reader that is slow.
	waitingParts = 256
	// renewInterval is how often the channel of a topic is asked for: it may have changed while the
	// connection was lost.
	renewInterval = 2 * time.Second
	callTimeout   = 2 * time.Second
)

// Hub has all streams of a process. Those of one topic share a connection. It is safe for
// concurrent use.
type Hub struct {
	redis *rdb.Partition
	log   *slog.Logger

	mu      sync.Mutex
	watches map[bus.TopicName]*watch
	streams int
	closed  bool
}

// New makes a hub for the topics of a store.
func New(st *store.Store, log *slog.Logger) *Hub {
	return &Hub{redis: st.Partition(), log: log, watches: map[bus.TopicName]*watch{}}
}

// Stream gets the events of a topic while they are published.
type Stream struct {
	hub   *Hub
	watch *watch
	parts chan Part
	// missed counts the events of parts for which there was no room.
	missed atomic.Int64
}

// Parts are what was published. It is closed when the hub is.
func (s *Stream) Parts() <-chan Part { return s.parts }

// Missed returns how many events there were that are in no part, since it was last asked.
func (s *Stream) Missed() int64 { return s.missed.Swap(0) }

// Open begins to watch a topic. It fails with [bus.ErrTopicUnknown], [bus.ErrUnavailable], or
// [bus.ErrOverloaded] when too many are watched. The stream must be closed.
func (h *Hub) Open(ctx context.Context, topic bus.TopicName) (*Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.streams >= maxStreams {
		return nil, bus.ErrOverloaded
	}
	w := h.watches[topic]
	if w == nil {
		w = &watch{hub: h, topic: topic, streams: map[*Stream]bool{}}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := w.listen(ctx); err != nil {
			return nil, err
		}
		w.start()
		h.watches[topic] = w
	}
	s := &Stream{hub: h, watch: w, parts: make(chan Part, waitingParts)}
	w.streams[s] = true
	h.streams++
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.watch.streams[s] {
		return
	}
	delete(s.watch.streams, s)
	s.hub.streams--
	if len(s.watch.streams) == 0 {
		delete(s.hub.watches, s.watch.topic)
		s.watch.stop()
	}
}

// Close ends all streams, and lets none begin.
func (h *Hub) Close() {
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
	h.streams = 0
}

// watch is what the streams of one topic share.
type watch struct {
	hub   *Hub
	topic bus.TopicName
	// streams are guarded by the hub's lock.
	streams map[*Stream]bool

	channel  string
	listener *rdb.Listener
	stop     context.CancelFunc
}

// listen finds the topic's channel, and listens on it unless it does. Then it asks once more: a
// publish may have found nobody there before, and given the channel up.
func (w *watch) listen(ctx context.Context) error {
	own := w.channel
	if own == "" {
		own = rand.Text()
	}
	for {
		change := w.hub.redis.Change(ctx, scriptOpen, string(w.topic), own)
		if err := change.Refusal("watch", refusals); err != nil {
			return err
		}
		if own = change.Text(0); own == w.channel {
			return nil
		}
		listener, err := w.hub.redis.NewListener(ctx, w.hub.redis.Namespace()+"tail:"+own)
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

// start renews the watch until it is stopped, in the background.
func (w *watch) start() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(renewInterval):
				calling, cancel := context.WithTimeout(ctx, callTimeout)
				if err := w.listen(calling); err != nil && ctx.Err() == nil {
					w.hub.log.Debug("could not renew a live tail", "topic", string(w.topic), "error", err)
				}
				cancel()
			}
		}
		_ = w.listener.Close()
		calling, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		// Where this fails, the next publish to the topic ends it.
		_ = w.hub.redis.Run(calling, scriptClose, string(w.topic), w.channel).Err()
	}()
}

// hand gives a message to all streams.
func (w *watch) hand(text string) {
	part, ok := parsePart(text)
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
