package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb"
	"routemaster/internal/telemetry"
)

const (
	// A batch changes maxLabels labels at once, so that they share round trips.
	maxLabels = 32
	// maxRest is how long the events of a batch wait for their labels to finish earlier work: as long
	// as a client's PATCH does, and not longer for many labels, since all topics wait.
	maxRest = time.Second
)

// heardEvent is an event as it is delivered.
type heardEvent struct {
	Topic bus.TopicName `json:"topic"`
	Type  bus.EventType `json:"type"`
	URL   string        `json:"url"`
	At    json.Number   `json:"t"`
	Data  any           `json:"data"`
}

// Hear takes a batch of events, as an endpoint would: it changes the labels that they are about.
// The events about one label come in their order, each when the label rests from the one before, as
// long as the batch has not taken a second. The attempt has failed if Redis is unavailable: then
// the batch comes again.
func (c *Client) Hear(ctx context.Context, r outbound.Request) outbound.Attempt {
	start := time.Now()
	err := c.hear(ctx, r)
	attempt := outbound.Attempt{Status: http.StatusOK, Duration: time.Since(start)}
	if err != nil {
		attempt.Status, attempt.Err = http.StatusServiceUnavailable, err
	}
	return attempt
}

func (c *Client) hear(ctx context.Context, r outbound.Request) error {
	events, err := readEvents(r)
	if err != nil {
		return err
	}
	definitions, err := c.Labels.Definitions(ctx)
	if err != nil {
		return err
	}
	changes, patience := map[labelID][]machines.Change{}, time.Now().Add(maxRest)
	publishers, err := c.publishers(ctx, events)
	if err != nil {
		return err
	}
	for _, m := range definitions.Machines {
		for i := range events {
			found, unusable := m.ChangesOf(&events[i])
			for range unusable {
				c.heard(m.Name, events[i].Topic, eventUnusable)
			}
			for name, change := range found {
				id := labelID{m.Name, name}
				change.Patience, change.Definitions, change.By = patience, definitions.Version, publishers[events[i].Topic]
				changes[id] = append(changes[id], change)
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLabels)
	for id, some := range changes {
		group.Go(func() error { return c.change(ctx, definitions, id, some) })
	}
	return group.Wait()
}

// publishers returns the owners of the events' topics, by their public names: labels that the
// events make are charged to them. A topic that has just gone has no owner, so the machines' own
// client is charged.
func (c *Client) publishers(ctx context.Context, events []machines.Event) (map[bus.TopicName]bus.ClientName, error) {
	of := map[bus.TopicName]bus.ClientName{}
	for i := range events {
		topic := events[i].Topic
		if _, read := of[topic]; read {
			continue
		}
		home := c.Stores.Home(topic).Partition()
		keys := layout.Keys{Namespace: home.Namespace()}
		var token, owner rdb.Reply[string]
		err := home.Reads(ctx, "read publisher", func(pipe rdb.Commands) {
			token, owner = pipe.HGet(ctx, keys.Topic(topic), "publisher"), pipe.HGet(ctx, keys.Owners(), string(topic))
		})
		if err != nil {
			return nil, err
		}
		if of[topic] = machines.DefaultPublisher; owner.Val() != "" {
			of[topic] = bus.PublicName(bus.Token(token.Val()), bus.ClientName(owner.Val()))
		}
	}
	return of, nil
}

// readEvents reads the body of a delivery.
func readEvents(r outbound.Request) ([]machines.Event, error) {
	body := r.Body()
	defer body.Close()
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	var heard []heardEvent
	if err := decoder.Decode(&heard); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	events := make([]machines.Event, len(heard))
	for i, e := range heard {
		at, _ := e.At.Int64() // 0 for none: no move is of that time
		events[i] = machines.Event{Topic: e.Topic, Type: e.Type, URL: e.URL, At: at, Data: e.Data}
	}
	return events, nil
}

// change makes the changes of one label by events of a batch.
func (c *Client) change(ctx context.Context, d *machines.Definitions, id labelID, changes []machines.Change) error {
	for _, change := range changes {
		var err error
		if change.Hops, err = c.hopsOf(ctx, d, change.Event); err != nil {
			return err
		}
		label, err := c.Labels.Of(id.machine, id.name).Change(ctx, id.machine, id.name, change, c.Now())
		outcome, again := outcomeOf(label, err)
		if again != nil {
			return again
		}
		c.heard(id.machine, change.Event.Topic, outcome)
		log := telemetry.Often(c.Log, string(id.machine)+" "+string(change.Event.Topic))
		fields := []any{"machine", id.machine, "label", id.name, "topic", change.Event.Topic, "outcome", outcome}
		switch outcome {
		case eventPaused:
			again := bus.Command("label retry", string(id.machine), string(id.name)) + " has it go on"
			log.Warn("paused a label, as machines set off one another through topics", append(fields, "hops", change.Hops, "hint", again)...)
		case eventFull:
			log.Warn("dropped an event, as the account is full of the client that has made its label, or would", append(fields, "error", err)...)
		case eventDamaged:
			// No other time would be better, and nothing passes a batch that fails.
			log.Error("dropped an event, as the record of its label is damaged; `rtm doctor` shows how", append(fields, "error", err)...)
		default:
			log.Debug("heard an event about a label", fields...)
		}
	}
	return nil
}

// hopsOf returns the length of the chain of moves that led to an event: 0 if the event reports no
// move, otherwise one more than the chain of that move. An event of a topic to which no machine
// publishes costs nothing.
func (c *Client) hopsOf(ctx context.Context, d *machines.Definitions, e *machines.Event) (hops int, err error) {
	for _, move := range d.MovesOf(e) {
		before, err := c.Labels.Of(move.Machine, move.Label).Hops(ctx, move)
		if rdb.IsWrongType(err) {
			err = nil // of a damaged label nothing is known
		}
		if err != nil {
			return 0, err
		}
		hops = max(hops, before+1)
	}
	return hops, nil
}

// outcomeOf returns the outcome of an event. It fails with errors that may not occur another time.
func outcomeOf(label machines.Label, err error) (eventOutcome, error) {
	_, invalid := errors.AsType[*bus.Invalid](err)
	_, full := errors.AsType[*account.FullError](err)
	switch {
	case err == nil && label.Version == 0:
		return eventCreated, nil
	case err == nil && label.ErroredReason == machines.ReasonHops:
		return eventPaused, nil
	case err == nil:
		return eventChanged, nil
	case errors.Is(err, machines.ErrUnknownLabel), errors.Is(err, machines.ErrUnknownMachine):
		return eventUnknown, nil
	case errors.Is(err, machines.ErrLabelDeleted):
		return eventDeleted, nil
	case full:
		return eventFull, nil
	case invalid:
		return eventInvalid, nil
	case rdb.IsWrongType(err):
		return eventDamaged, nil
	}
	return "", err
}
