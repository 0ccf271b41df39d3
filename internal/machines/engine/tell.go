package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
)

const (
	// maxMoves is how many moves are published at once, and maxSlices how many times a task does so
	// before others have their turn.
	maxMoves, maxSlices = 100, 10
	// tellAgain is the pause until moves are published that could not be, and afterOutage that if
	// Redis was unavailable.
	tellAgain, afterOutage = 10 * time.Second, time.Second
	// keyTTL is how long it is known that moves were published, for a worker that takes over.
	keyTTL = 24 * time.Hour
)

var errNoClient = errors.New("there is no client")

// Tell is the handler of [bus.JobMoves]: it publishes the moves of a machine that are in the task's
// partition, in their order. A move that is published twice, because a worker died or was slow, is
// stored once, by its idempotency key.
func (c *Client) Tell(ctx context.Context, task *queue.Task) queue.Result {
	machine, labels := machines.Name(task.Job.Args[0]), c.Labels.All()[task.Partition]
	for range maxSlices {
		left, err := c.tellSlice(ctx, labels, machine)
		if errors.Is(err, bus.ErrUnavailable) {
			return queue.Result{RetryAt: c.Now().Add(afterOutage)}
		} else if err != nil {
			telemetry.Often(c.Log, string(machine)).Error("could not publish moves of labels", "machine", machine, "error", err, "next_try_in", tellAgain)
			return queue.Result{RetryAt: c.Now().Add(tellAgain)}
		}
		if left == 0 {
			return queue.Result{}
		}
	}
	return queue.Result{RetryAt: c.Now()}
}

// tellSlice publishes the oldest moves of a machine. It returns how many are left.
func (c *Client) tellSlice(ctx context.Context, labels *Store, machine machines.Name) (left int, err error) {
	slice, err := labels.Outbox(ctx, machine, maxMoves)
	if err != nil || len(slice.Moves) == 0 {
		return 0, err
	}
	for i := 0; i < len(slice.Moves); {
		n := 1
		for i+n < len(slice.Moves) && slice.Moves[i+n].Publish == slice.Moves[i].Publish {
			n++
		}
		if err := c.publish(ctx, slice.Part(i, i+n)); err != nil {
			return 0, err
		}
		i += n
	}
	return labels.Unload(ctx, &slice)
}

// publish publishes moves that go to one topic; in halves, if together they would open too many
// batches, or one of them is no event. That one is dropped: it would hold up all others for ever.
func (c *Client) publish(ctx context.Context, s *OutboxSlice) error {
	err := c.publishTogether(ctx, s)
	_, invalid := errors.AsType[*bus.Invalid](err)
	switch {
	case err == nil:
		c.Recorder.Count(telemetry.PublishedMoves, len(s.Moves), string(s.Machine))
		return nil
	case len(s.Moves) > 1 && (invalid || errors.Is(err, bus.ErrTooManyBatches)):
		half := len(s.Moves) / 2
		if err := c.publish(ctx, s.Part(0, half)); err != nil {
			return err
		}
		return c.publish(ctx, s.Part(half, len(s.Moves)))
	case invalid:
		c.Recorder.Count(telemetry.DroppedMoves, 1, string(s.Machine))
		telemetry.Often(c.Log, string(s.Machine)).Error("dropped a move of a label that cannot be published", "machine", s.Machine, "label", s.Moves[0].Label, "error", err)
		return nil
	case errors.Is(err, errNoClient) || errors.Is(err, bus.ErrTopicClaimed):
		return c.republish(ctx, s, err)
	}
	return err
}

// republish publishes moves with the current definition, if that differs from the one that failed.
// Moves of a machine that does not publish any more are dropped.
func (c *Client) republish(ctx context.Context, s *OutboxSlice, failed error) error {
	definitions, err := c.Labels.Definitions(ctx)
	if err != nil {
		return err
	}
	m := definitions.Machine(s.Machine)
	if m != nil && m.Publish != nil && *m.Publish == s.Moves[0].Publish {
		return failed
	}
	if m == nil || m.Publish == nil {
		c.Log.Error("dropped moves of labels, as their machine does not publish any more", "machine", s.Machine, "moves", len(s.Moves), "error", failed)
		c.Recorder.Count(telemetry.DroppedMoves, len(s.Moves), string(s.Machine))
		return nil
	}
	now := OutboxSlice{Machine: s.Machine, Partition: s.Partition, First: s.First}
	for _, move := range s.Moves {
		move.Publish = *m.Publish
		now.Moves = append(now.Moves, move)
	}
	return c.publish(ctx, &now)
}

// publishTogether publishes moves that go to one topic. It fails with a [bus.Invalid] if one of
// them is no event, and as [ingest.Ingest.Publish] does.
func (c *Client) publishTogether(ctx context.Context, s *OutboxSlice) error {
	p := s.Moves[0].Publish
	token, err := c.publisher(ctx, p.Publisher)
	if err != nil {
		return err
	}
	text, err := machines.Encode(viewMoves(s))
	if err != nil {
		return err
	}
	events, err := wire.ParseEvents(text, p.Topic, c.Now().UnixMilli(), wire.Limits{Events: maxMoves, Data: math.MaxInt})
	if err != nil {
		return err
	}
	// Numbers begin again if the key that counts moves is lost.
	key := fmt.Sprintf("moves of %s, %d to %d, from %d on", s.Machine, s.First, s.First+int64(len(s.Moves))-1, s.Moves[0].At.UnixMilli())
	if s.Partition != "" {
		key += ", of " + s.Partition
	}
	return c.Ingest.Publish(ctx, token, p.Topic, events, &bus.IdempotencyKey{Key: key, Digest: string(text), TTL: keyTTL})
}

// publisher returns a token of the publishing client. It creates a missing token for the machines'
// own client.
func (c *Client) publisher(ctx context.Context, name bus.ClientName) (bus.Token, error) {
	if name == machines.DefaultPublisher {
		return c.own(ctx)
	}
	all, err := c.Stores.Tokens(ctx)
	if err != nil {
		return "", err
	}
	if token := clients(all).token(name); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("%w %s, which is to publish them", errNoClient, name)
}

// moveEvent is a move as a publisher would POST it.
type moveEvent struct {
	Type      bus.EventType `json:"type"`
	URL       string        `json:"url"`
	Timestamp int64         `json:"timestamp"` // ms
	Data      moveData      `json:"data"`
}

type moveData struct {
	Label machines.LabelName `json:"label"`
	// From is nil for a creation, To for a deletion.
	From *machines.StateName `json:"from"`
	To   *machines.StateName `json:"to"`
}

func viewMoves(s *OutboxSlice) []moveEvent {
	events := make([]moveEvent, len(s.Moves))
	for i, m := range s.Moves {
		events[i] = moveEvent{bus.Update, machines.ExpandURL(m.URL, s.Machine, m.Label), m.At.UnixMilli(), moveData{m.Label, m.From, m.To}}
	}
	return events
}
