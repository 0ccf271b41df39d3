package samples

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// topicsPerTrip bounds of how many topics one round trip asks.
const topicsPerTrip = 500

// readTopics reads the topics whose home the partition is, ordered by name.
func (p *partition) readTopics(ctx context.Context, d *draft) error {
	claimed := map[string]bus.Token{}
	err := rdb.EachByName(ctx, p.redis, p.keys.Topics(), rdb.NameRange{}, topicsPerTrip, p.redis.OwnName, func(some []rdb.NamedMember) (int, error) {
		return len(some), p.readSomeTopics(ctx, some, d, claimed)
	})
	if err == nil {
		err = p.addPublishers(ctx, claimed)
	}
	if err != nil {
		d.Topics = nil
		return err
	}
	for i := range d.Topics {
		d.Topics[i].Publisher = p.known.publishers[d.Topics[i].Name]
	}
	return nil
}

// readSomeTopics reads the fields of topics that each publish changes, and adds unknown publishers
// to claimed.
func (p *partition) readSomeTopics(ctx context.Context, some []rdb.NamedMember, d *draft, claimed map[string]bus.Token) error {
	topics := make([]rdb.Reply[[]any], len(some))
	err := p.redis.Reads(ctx, "list topics", func(pipe rdb.Commands) {
		for i, m := range some {
			fields := []string{"counter", "publisher"}
			if p.known.publishers[m.Name] != "" {
				fields = fields[:1]
			}
			topics[i] = pipe.HMGet(ctx, p.keys.Topic(bus.TopicName(m.Name)), fields...)
		}
	})
	if err != nil {
		return err
	}
	for i, m := range some {
		name, values := m.Name, topics[i].Val()
		if topics[i].Err() != nil {
			d.Damaged = append(d.Damaged, layout.Keys{}.Topic(bus.TopicName(name)))
			continue
		}
		d.Topics = append(d.Topics, overview.TopicState{Name: name, Events: rdb.Integer(rdb.Text(values[0]), 0)})
		if len(values) > 1 && values[1] != nil { // absent before the first publish
			claimed[name] = bus.Token(rdb.Text(values[1]))
		}
	}
	return nil
}

// addPublishers caches the publishers of topics. It reads the owners of all: Redis keeps a hash of
// some hundred fields as a list, and would search it for each of many.
func (p *partition) addPublishers(ctx context.Context, claimed map[string]bus.Token) error {
	if len(claimed) == 0 {
		return nil
	}
	owners := map[string]string{}
	err := p.redis.EachPage(ctx, p.keys.Owners(), rdb.Hash, 0, rdb.Pairs(func(topic, owner string) { owners[topic] = owner }))
	if err != nil {
		return err
	}
	for topic, token := range claimed {
		p.known.publishers[topic] = string(bus.PublicName(token, bus.ClientName(owners[topic])))
	}
	return nil
}
