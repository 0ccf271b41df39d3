package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb"
	"routemaster/internal/telemetry"
)

const (
	// A batch changes maxLabels labels at once, so that they share round trips.
	maxLabels = 32
	// maxRest is how long the events of a batch wait until their labels rest from those before: as
	// long as a client's PATCH does, and not longer for many labels, since all topics wait.
	maxRest = time.Second
)

// heardEvent is an event as it is delivered.
type heardEvent struct {
	Topic bus.TopicName `json:"topic"`
	Type  bus.EventType `json:"type"`
	URL   string        `json:"url"`
	Data  any           `json:"data"`
}

// labelID names a label.
type labelID struct {
	machine machines.Name
	label   machines.LabelName
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
	for _, m := range definitions.Machines {
		for i := range events {
			found, unusable := m.ChangesOf(&events[i])
			for range unusable {
				c.Recorder.EventHeard(m.Name, events[i].Topic, telemetry.EventUnusable)
			}
			for name, change := range found {
				id := labelID{m.Name, name}
				change.Patience, change.Definitions = patience, definitions.Version
				changes[id] = append(changes[id], change)
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLabels)
	for id, some := range changes {
		group.Go(func() error { return c.change(ctx, id, some) })
	}
	return group.Wait()
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
		events[i] = machines.Event(e)
	}
	return events, nil
}

// change does what events of a batch change of one label.
func (c *Client) change(ctx context.Context, id labelID, changes []machines.Change) error {
	for _, change := range changes {
		label, err := c.Labels.Of(id.machine, id.label).Change(ctx, id.machine, id.label, change, c.Now())
		outcome, again := outcomeOf(label, err)
		if again != nil {
			return again
		}
		c.Recorder.EventHeard(id.machine, change.Event.Topic, outcome)
		fields := []any{"machine", id.machine, "label", id.label, "topic", change.Event.Topic, "outcome", outcome}
		if outcome == telemetry.EventDamaged {
			// No other time would be better, and nothing passes a batch that fails.
			c.Log.Error("dropped an event, as the record of its label is damaged; rtm doctor shows how", append(fields, "error", err)...)
		} else {
			c.Log.Debug("heard an event about a label", fields...)
		}
	}
	return nil
}

// outcomeOf says what became of an event. It fails with what may be otherwise another time.
func outcomeOf(label machines.Label, err error) (telemetry.EventOutcome, error) {
	_, invalid := errors.AsType[*bus.Invalid](err)
	switch {
	case err == nil && label.Version == 0:
		return telemetry.EventCreated, nil
	case err == nil:
		return telemetry.EventChanged, nil
	case errors.Is(err, machines.ErrUnknownLabel), errors.Is(err, machines.ErrUnknownMachine):
		return telemetry.EventUnknown, nil
	case errors.Is(err, machines.ErrLabelDeleted):
		return telemetry.EventDeleted, nil
	case invalid:
		return telemetry.EventInvalid, nil
	case rdb.IsWrongType(err):
		return telemetry.EventDamaged, nil
	}
	return "", err
}
