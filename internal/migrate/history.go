package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	slices.Sort(topics)
	return fmt.Errorf("these topics keep a history, which the original would never trim: %s; remove it first, with rtm topic history NAME --off",
		strings.Join(topics, ", "))
}
