package tail

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"routemaster/client"
	"routemaster/internal/bus"
)

// checkTopics refuses topics that do not exist, unless they are to be created.
func (t *tail) checkTopics(ctx context.Context, on *client.Client) error {
	known, err := on.Topics(ctx)
	if err != nil || t.Create {
		return err
	}
	var names []string
	for _, topic := range known {
		names = append(names, topic.Name)
	}
	var unknown []string
	for _, topic := range t.Topics {
		if !slices.Contains(names, topic) {
			unknown = append(unknown, topic+suggest(topic, names))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("there is no topic %s; --create creates it", strings.Join(unknown, ", nor "))
}

// suggest names the topics that may have been meant.
func suggest(topic string, names []string) string {
	var close []string
	for _, name := range names {
		near := bus.EditDistance(topic, name) <= max(1, len(topic)/4) || strings.HasPrefix(name, topic) || strings.HasPrefix(topic, name)
		if near && bus.TopicName(name).Validate() == nil {
			close = append(close, name)
		}
	}
	if len(close) == 0 {
		return ""
	}
	slices.Sort(close)
	return " (did you mean " + strings.Join(close[:min(len(close), 5)], ", ") + "?)"
}
