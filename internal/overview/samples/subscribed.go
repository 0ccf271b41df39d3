package samples

import (
	"context"
	"slices"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
)

// subscribedTTL is how long the topics of subscribers are taken for those that were read. They
// seldom change, and reading them with each sample is a fifth of what that costs Redis.
const subscribedTTL = 10 * time.Second

// subscribed remembers the topics of subscribers. It is safe for concurrent use.
type subscribed struct {
	mu     sync.Mutex // guards the fields below
	readAt time.Time
	topics map[bus.Token][]bus.TopicName
}

// of returns the topics of subscribers. It reads them if it does not know all, or not since lately.
func (s *subscribed) of(
	ctx context.Context, stats *stats.Stats, tokens []bus.Token, now time.Time,
) (map[bus.Token][]bus.TopicName, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNew := func(token bus.Token) bool {
		_, known := s.topics[token]
		return !known
	}
	if now.Sub(s.readAt) < subscribedTTL && !slices.ContainsFunc(tokens, isNew) {
		return s.topics, nil
	}
	topics, err := stats.TopicsOf(ctx, tokens)
	if err != nil {
		return nil, err
	}
	s.topics, s.readAt = topics, now
	return topics, nil
}
