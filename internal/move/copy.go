package move

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// copy makes the new bus what the old one is: its tokens, topics and subscribers, of which all are
// held. What is so already is not written again. No client and no other run changes the new bus,
// which is closed; what the old one has not, the new one must not have either.
func (m *mover) copy(ctx context.Context) error {
	from, err := m.from.read(ctx)
	if err != nil {
		return m.from.blame(err)
	}
	to, err := m.to.read(ctx)
	if err != nil {
		return m.to.blame(err)
	}
	return m.to.blame(m.copyTo(ctx, from, to))
}

// copyTo makes the new bus equal to a picture of the old one.
func (m *mover) copyTo(ctx context.Context, from, to *picture) error {
	m.report.Tokens, m.report.Topics, m.report.Subscribers = len(from.tokens), len(from.topics), len(from.subscribers)
	renamed, err := m.copyTokens(ctx, from, to)
	if err == nil && renamed { // what was theirs went with them
		to, err = m.to.read(ctx)
	}
	if err != nil {
		return err
	}
	for _, step := range []func(ctx context.Context, from, to *picture) error{m.copyTopics, m.copySubscribers, m.removeOthers} {
		if err := step(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyTokens returns whether a token was another client's on the new bus.
func (m *mover) copyTokens(ctx context.Context, from, to *picture) (renamed bool, err error) {
	for _, token := range slices.Sorted(maps.Keys(from.tokens)) {
		name := from.tokens[token]
		if to.tokens[token] == name && !to.torn[token] {
			continue
		}
		err := m.to.PutToken(ctx, token, name)
		if errors.Is(err, bus.ErrTokenTaken) { // it was removed, and made again for another client
			renamed = true
			if err = m.to.DeleteToken(ctx, token); err == nil {
				err = m.to.PutToken(ctx, token, name)
			}
		}
		if err != nil {
			return renamed, err
		}
		m.changed(1)
	}
	return renamed, nil
}

// topicsPerStep is how many topics one step of a script writes.
const topicsPerStep = 100

func (m *mover) copyTopics(ctx context.Context, from, to *picture) error {
	homes := map[rdb.Number][]bus.TopicName{}
	for _, name := range slices.Sorted(maps.Keys(from.topics)) {
		if there, is := to.topics[name]; is && there == from.topics[name].begun() {
			continue
		}
		number := m.to.Home(name).Partition().Number()
		homes[number] = append(homes[number], name)
	}
	for number, names := range homes {
		for some := range slices.Chunk(names, topicsPerStep) {
			var args []any
			for _, name := range some {
				t := from.topics[name]
				args = append(args, string(name), t.publisher, t.counter, t.last, t.owner)
				args = append(args, t.begun().first, t.events, t.age, t.bytes)
			}
			if err := m.to.All()[number].Change(ctx, "copy topics", scriptTopics, args...); err != nil {
				return err
			}
			m.changed(len(some))
		}
	}
	return nil
}

func (m *mover) copySubscribers(ctx context.Context, from, to *picture) error {
	for _, token := range slices.Sorted(maps.Keys(from.subscribers)) {
		sub, there := from.subscribers[token], to.subscribers[token]
		if there != nil && there.isComplete && there.pausedUntil == sub.pausedUntil && there.equal(sub.settings, true) {
			continue
		}
		err := m.copySubscriber(ctx, token, sub)
		if errors.Is(err, bus.ErrTokenUnknown) && from.tokens[token] == "" {
			if !m.from.first().isClosed {
				continue // it was registered just now: it will be copied by the switch, if not before
			}
			err = errors.New("a subscriber of the old bus has a token that is not registered: `rtm doctor --fix` in the environment of its web removes it")
		}
		if err != nil {
			return err
		}
		m.changed(1)
	}
	return nil
}

// copySubscriber subscribes a client to the new bus, and holds it. That it has nothing to be added
// is noted last.
func (m *mover) copySubscriber(ctx context.Context, token bus.Token, sub *subscriber) error {
	if err := m.to.Of(token).Change(ctx, "copy subscriber", scriptBegin, string(token)); err != nil {
		return err
	}
	if err := m.to.Subscribe(ctx, token, sub.subscription(), m.Now()); err != nil {
		return err
	}
	args := []any{string(token), sub.pausedUntil, sub.sent, sub.health, sub.tried, sub.secrets, bus.NewPlan()}
	return m.to.Of(token).Change(ctx, "hold subscriber", scriptHold, append(args, sub.fields()...)...)
}

// fields are what a subscription may lack, and the new bus must lack too: names and values.
func (s settings) fields() (fields []any) {
	if s.hasUUID {
		fields = append(fields, "uuid", s.uuid)
	}
	if s.timeout != "" {
		fields = append(fields, "timeout", s.timeout)
	}
	if s.maxEvents != "" {
		fields = append(fields, "max_events", s.maxEvents)
	}
	return fields
}

// subscription is what a client would have to say to get the settings.
func (s settings) subscription() bus.Subscription {
	sub := bus.Subscription{Callback: s.callback, Options: map[string]string{}}
	for _, name := range s.topics {
		sub.Topics = append(sub.Topics, bus.TopicName(name))
	}
	if s.hasUUID {
		sub.UUID = &s.uuid
	}
	if ms, err := strconv.Atoi(s.timeout); err == nil {
		timeout := time.Duration(ms) * time.Millisecond
		sub.Timeout = &timeout
	}
	if n, err := strconv.Atoi(s.maxEvents); err == nil {
		sub.MaxEvents = &n
	}
	for _, name := range bus.OptionNames() {
		sub.Options[name] = s.options[name]
	}
	return sub
}

// removeOthers removes what was copied before, and is not on the old bus any more.
func (m *mover) removeOthers(ctx context.Context, from, to *picture) error {
	for token := range to.subscribers {
		if from.subscribers[token] != nil {
			continue
		}
		if err := m.to.Of(token).DeleteSubscriber(ctx, token); err != nil && !errors.Is(err, bus.ErrNotSubscribed) {
			return err
		}
		m.changed(1)
	}
	tokens := maps.Clone(to.torn) // some partitions may know one that its own does not know any more
	for token := range to.tokens {
		tokens[token] = true
	}
	for token := range tokens {
		if _, is := from.tokens[token]; is {
			continue
		}
		if err := m.to.DeleteToken(ctx, token); err != nil {
			return err
		}
		m.changed(1)
	}
	for name := range to.topics {
		if _, is := from.topics[name]; is {
			continue
		}
		if err := m.to.DeleteTopic(ctx, name, ""); err != nil && !errors.Is(err, bus.ErrTopicUnknown) {
			return err
		}
		m.changed(1)
	}
	return m.forgetHeld(ctx, from)
}

// forgetHeld ends that subscribers are held who are none any more.
func (m *mover) forgetHeld(ctx context.Context, from *picture) error {
	held, err := m.to.heldTokens(ctx)
	if err != nil {
		return err
	}
	for _, token := range held {
		if from.subscribers[token] == nil {
			if err := m.release(ctx, token, &subscriber{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// release has the deliveries to a subscriber begin on the new bus, with what its deliveries on the
// old one have shown. It does nothing if it is not held.
func (m *mover) release(ctx context.Context, token bus.Token, was *subscriber) error {
	return m.to.Of(token).Change(ctx, "release subscriber", scriptRelease, string(token), was.sent, was.health, was.tried)
}
