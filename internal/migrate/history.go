package migrate

import (
	"context"
	"fmt"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// requireNoHistory fails on the way back while topics keep a history: the original would neither
// append to it nor trim it, and its events would be there for ever.
func (r *run) requireNoHistory(ctx context.Context) error {
	if !r.Back {
		return nil
	}
	fields, err := r.redis.HKeys(ctx, r.keys.Plans()).Result()
	if err != nil {
		return rdb.Wrap("list histories", err)
	}
	var topics []string
	for _, field := range fields {
		if topic, ok := strings.CutPrefix(field, "/"); ok {
			topics = append(topics, topic)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	return fmt.Errorf("topics keep a history, which the original would never trim; remove it first, with %s", bus.Commands("topic history --off", topics))
}
