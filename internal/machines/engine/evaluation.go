package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/outbound"
	"routemaster/internal/telemetry"
)

// maxFeed is how long the body of a feed may be, in bytes.
const maxFeed = 256 << 10

// Evaluator evaluates conditions. It is safe for concurrent use.
type Evaluator struct {
	client   *outbound.Client
	recorder *telemetry.Recorder
	now      func() time.Time
}

// New makes an evaluator that asks feeds through a client. The recorder may be nil.
func New(client *outbound.Client, recorder *telemetry.Recorder, now func() time.Time) *Evaluator {
	return &Evaluator{client, recorder, now}
}

// Evaluation is one evaluation of a label: each feed is asked at most once.
type Evaluation struct {
	*condition.Environment
	// Asked is whether a feed was asked, and FeedFailed whether one did not answer as it should.
	Asked, FeedFailed bool

	*Evaluator
	ctx     context.Context
	machine *machines.Machine
	label   *machines.Label
	feeds   map[string]feedResult
}

type feedResult struct {
	value any
	err   error
}

// Begin prepares to evaluate a label in its state, for its trigger. Without feeds, tests that
// depend on them are unknown. It fails if the metadata names no time zone where it should.
func (e *Evaluator) Begin(ctx context.Context, m *machines.Machine, label *machines.Label, feeds bool) (*Evaluation, error) {
	metadata, err := machines.ParseObject(label.Metadata)
	if err != nil {
		return nil, fmt.Errorf("metadata %w", err)
	}
	zone, now, due := machines.Zone{}, e.now(), time.Time{}
	if state := m.State(label.State); state != nil && state.Gate != nil {
		zone = state.Gate.ZoneFor(label.Trigger)
		due = state.Gate.DueFor(label.Trigger, metadata, now)
	}
	if due.After(now) { // the clock of the process that found it was ahead of ours
		now = due
	}
	location, err := zone.In(metadata)
	if err != nil {
		return nil, err
	}
	if location == nil {
		location = time.Local
	}
	n := &Evaluation{
		Environment: &condition.Environment{
			Metadata: map[string]any(metadata), EnteredState: label.EnteredAt, PreviousState: string(label.Previous),
			Now: now.In(location),
		},
		Evaluator: e, ctx: ctx, machine: m, label: label, feeds: map[string]feedResult{},
	}
	if !due.IsZero() {
		n.Due = due.In(location)
	}
	if feeds {
		n.Feed = n.feed
	}
	return n, nil
}

// Again prepares to evaluate the label as it is by now, with the answers that feeds have given so
// far; other feeds are unknown. It fails as Begin does.
func (n *Evaluation) Again(label *machines.Label) (*Evaluation, error) {
	again, err := n.Begin(n.ctx, n.machine, label, false)
	if err != nil {
		return nil, err
	}
	again.Asked, again.FeedFailed, again.feeds = n.Asked, n.FeedFailed, n.feeds
	again.Feed = again.known
	return again, nil
}

// Next returns the state to which a label goes from its own.
func (n *Evaluation) Next(next *machines.Next) (machines.StateName, error) {
	if next.Path == nil {
		return next.Default, nil
	}
	value, err := next.Path.Lookup(n.Environment)
	if err != nil {
		return "", fmt.Errorf("next: %w", err)
	}
	for _, d := range next.Destinations {
		if condition.Equal(value, d.Value) {
			return d.State, nil
		}
	}
	return next.Default, nil
}

// maxValue and maxValues bound the stored values of a condition, in bytes: of each part, and of
// all.
const (
	maxValue  = 256
	maxValues = 2048
)

// Values returns the values of the parts of a condition, for the history.
func (n *Evaluation) Values(c *condition.Condition) map[string]any {
	values, left := map[string]any{}, maxValues
	environment := *n.Environment
	environment.Feed = n.known // feeds that were not needed are not asked now
	for _, part := range c.Explain(&environment).Parts {
		packed, err := json.Marshal(part.Value)
		if err != nil || part.Unknown || part.Error != "" {
			continue
		}
		value := part.Value
		if len(packed) > maxValue {
			value = strings.ToValidUTF8(string(packed[:maxValue]), "") + "…"
		}
		if left -= len(part.Text) + min(len(packed), maxValue); left < 0 {
			break
		}
		values[part.Text] = value
	}
	return values
}

// feed asks a feed, once.
func (n *Evaluation) feed(name string) (any, error) {
	result, there := n.feeds[name]
	if !there {
		result.value, result.err = n.ask(name)
		n.feeds[name] = result
	}
	return result.value, result.err
}

// known returns the answer of a feed that was asked, and [condition.ErrUnknown] for any other.
func (n *Evaluation) known(name string) (any, error) {
	if result, there := n.feeds[name]; there {
		return result.value, result.err
	}
	return nil, condition.ErrUnknown
}

func (n *Evaluation) ask(name string) (any, error) {
	feed := n.machine.Feed(name)
	if feed == nil {
		return nil, fmt.Errorf("there is no feed %s", name)
	}
	n.Asked = true
	attempt := n.get(feed)
	if attempt.Doubtful { // it changes nothing there
		attempt = n.get(feed)
	}
	n.recorder.Count(telemetry.Feeds, 1, string(n.machine.Name), name, strconv.Itoa(attempt.Status))
	object, err := readFeed(attempt)
	if err != nil {
		n.FeedFailed = attempt.Failure() == bus.EndpointFailure
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	return map[string]any(object), nil
}

// get sends the request of a feed.
func (n *Evaluation) get(feed *machines.Feed) outbound.Attempt {
	return n.client.Send(n.ctx, outbound.Request{
		Method: http.MethodGet, URL: machines.ExpandURL(feed.URL, n.label.Machine, n.label.Name), Timeout: feed.Timeout,
		Header: http.Header{"Accept": {"application/json"}}, KeepBody: func(int) int { return maxFeed }, AwaitBody: true,
	})
}

func readFeed(a outbound.Attempt) (machines.Object, error) {
	switch {
	case a.Err != nil:
		return nil, a.Err
	case a.BodyErr != nil:
		return nil, fmt.Errorf("the body %w", a.BodyErr)
	}
	object, err := machines.ParseObject(a.Body)
	if err != nil {
		return nil, fmt.Errorf("the body %w", err)
	}
	return object, nil
}
