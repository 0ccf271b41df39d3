package move

import (
	"context"
	"errors"
	"maps"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Waiting is what waits on the old bus for a subscriber, which gets nothing from the new one until
// that is delivered.
type Waiting struct {
	// Name is the client's name.
	Name    bus.ClientName `json:"subscriber"`
	Events  int64          `json:"events"`
	Batches int64          `json:"batches"`
	// Replaying is whether a replay goes on, Relaying whether events may be on their way to its
	// partition, and Paused whether its client has paused it.
	Replaying bool `json:"replaying"`
	Relaying  bool `json:"relaying"`
	Paused    bool `json:"paused"`
}

// drain releases the subscribers for whom nothing is left on the old bus. What clients have changed
// since the switch holds there too.
func (m *mover) drain(ctx context.Context) error {
	held, err := m.to.heldTokens(ctx)
	if err != nil {
		return err
	}
	queued, err := m.readQueued(ctx) // first: what nothing is queued for does not change any more
	if err != nil {
		return err
	}
	from, err := m.from.read(ctx)
	if err != nil {
		return err
	}
	to, err := m.to.read(ctx)
	if err != nil {
		return err
	}
	if err := m.follow(ctx, held, from, to); err != nil {
		return err
	}
	for _, token := range held {
		waiting := queued.of(m.from.Of(token).Partition().Number(), token)
		if waiting != (Waiting{}) {
			continue
		}
		was := from.subscribers[token]
		if was == nil {
			was = &subscriber{}
		}
		if err := m.release(ctx, token, was); err != nil {
			return err
		}
		m.report.Released++
		m.step("released")
	}
	m.listWaiting(queued, from, to, held)
	return nil
}

// listWaiting reports for whom something is left. Of subscribers that are not held it is what was
// redelivered or replayed since they were released; of those that the old bus does not have, it is
// dropped there.
func (m *mover) listWaiting(queued *queued, from, to *picture, held []bus.Token) {
	tokens := slices.Concat(held, slices.Collect(maps.Keys(from.subscribers)))
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		waiting := queued.of(m.from.Of(token).Partition().Number(), token)
		if waiting == (Waiting{}) {
			continue
		}
		waiting.Name = bus.PublicName(token, from.tokens[token])
		sub := to.subscribers[token]
		waiting.Paused = sub != nil && rdb.Integer(sub.pausedUntil, 0) > m.Now().UnixMilli()
		m.report.Waiting = append(m.report.Waiting, waiting)
	}
}

// follow has the subscribers that are held be on the old bus what they are on the new one: what
// waits there goes to where their clients are now, if they are subscribers still.
func (m *mover) follow(ctx context.Context, held []bus.Token, from, to *picture) error {
	for _, token := range held {
		was, is := from.subscribers[token], to.subscribers[token]
		if was == nil {
			continue
		}
		if err := m.followOne(ctx, token, was, is); err != nil && !errors.Is(err, bus.ErrNotSubscribed) {
			return err
		}
	}
	return nil
}

func (m *mover) followOne(ctx context.Context, token bus.Token, was, is *subscriber) error {
	st := m.from.Of(token)
	if is == nil {
		return st.DeleteSubscriber(ctx, token)
	}
	if !was.equal(is.settings, false) {
		change := is.subscription()
		change.Topics = nil
		if err := st.PatchSubscriber(ctx, token, change, m.Now()); err != nil {
			return err
		}
		if err := st.Change(ctx, "change secrets", scriptSecrets, string(token), is.secrets, bus.NewPlan()); err != nil {
			return err
		}
	}
	switch {
	case was.pausedUntil == is.pausedUntil:
		return nil
	case is.pausedUntil == "0":
		return st.Resume(ctx, token)
	}
	return st.Pause(ctx, token, msTime(is.pausedUntil))
}

// queued is what is queued on the old bus.
type queued struct {
	relaying []bool // to each partition, by number
	parts    []part // of each partition
}

type part struct {
	events, batches map[string]string // token to how many
	replaying       map[bus.Token]bool
}

// readQueued reads what is queued on the old bus, which is closed: so what is on its way between
// its partitions is read first, and nothing can be missed in between.
func (m *mover) readQueued(ctx context.Context) (*queued, error) {
	q := &queued{relaying: make([]bool, len(m.from.partitions)), parts: make([]part, len(m.from.partitions))}
	for _, from := range m.from.Relays() {
		outboxes, err := from.Outboxes(ctx, len(m.from.partitions))
		if err != nil {
			return nil, err
		}
		for to, outbox := range outboxes {
			q.relaying[to] = q.relaying[to] || outbox.Events > 0
		}
	}
	for i, at := range m.from.partitions {
		k := m.from.keys[i]
		replaying, err := m.from.readReplays(ctx, i)
		if err != nil {
			return nil, err
		}
		var events, batches rdb.Reply[map[string]string]
		err = at.Pipelined(ctx, "read what is queued", func(pipe rdb.Commands) {
			events, batches = pipe.HGetAll(ctx, k.EventGauge()), pipe.HGetAll(ctx, k.BatchGauge())
		})
		if err == nil {
			err = at.RequireOpen(ctx) // or it may say nothing
		}
		if err != nil {
			return nil, err
		}
		q.parts[i] = part{events.Val(), batches.Val(), replaying}
	}
	return q, nil
}

// readReplays are the subscribers of a partition to which something is replayed.
func (s *side) readReplays(ctx context.Context, number int) (map[bus.Token]bool, error) {
	at, k := s.partitions[number], s.keys[number]
	ids, err := at.SMembers(ctx, k.RunningReplays()).Result()
	if err != nil {
		return nil, rdb.Wrap("read replays", err)
	}
	replaying := map[bus.Token]bool{}
	for _, id := range ids {
		token, err := at.HGet(ctx, k.Replay(bus.ReplayID(id)), "token").Result()
		if err = rdb.Wrap("read replay", err); err != nil {
			return nil, err
		}
		replaying[bus.Token(token)] = token != ""
	}
	return replaying, nil
}

// of is what is queued for a subscriber in a partition; its zero value is nothing. A gauge that is
// no number says that something is.
func (q *queued) of(number rdb.Number, token bus.Token) Waiting {
	p := q.parts[number]
	return Waiting{
		Events: rdb.Integer(p.events[string(token)], 1) * there(p.events, token), Batches: rdb.Integer(p.batches[string(token)], 1) * there(p.batches, token),
		Replaying: p.replaying[token], Relaying: q.relaying[number],
	}
}

// there is 1 if a gauge counts for a subscriber, else 0.
func there(gauge map[string]string, token bus.Token) int64 {
	if _, is := gauge[string(token)]; is {
		return 1
	}
	return 0
}
