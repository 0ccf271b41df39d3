package engine_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

const hearingAll = `
state_machines:
  orders:
    publish: {topic: %s, url: "https://app.example/<state_machine>/<label>"}
    states:
      - gate: new
        exit_condition: metadata.paid
        triggers:
          - {topic: %s, label: {url: "https://app.example/<state_machine>/<label>"}, create: true}
          - {topic: %s, label: {url: "https://app.example/<state_machine>/<label>"}, create: true}
          - {topic: %s, label: {url: "https://app.example/<state_machine>/<label>"}, create: true}
        next: paid
      - {gate: paid, exit_condition: false}
`

// TestMachinesHearTopicsOfAllPartitions and publish to them, though they are in one.
func TestMachinesHearTopicsOfAllPartitions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		p := storetest.NewPartitions(t, server.Open(t))
		newClient := func() *engine.Client {
			return engine.NewClient(engine.ClientConfig{
				Stores: p.Bus, Labels: engine.NewBus(p.All), Ingest: ingest.New(p.Bus, ingest.Options{}),
				Log: slog.New(slog.DiscardHandler), Now: p.Now,
			})
		}
		heard := []bus.TopicName{p.TopicIn(0, 0), p.TopicIn(1, 0), p.TopicIn(2, 0)}
		apply := func(to bus.TopicName) error {
			source := fmt.Appendf(nil, hearingAll, to, heard[0], heard[1], heard[2])
			next, _, err := definition.Load(definition.File{Content: source})
			require.NoError(t, err)
			next.Source = source
			_, err = newClient().Apply(ctx, next, nil)
			return err
		}
		for number := range p.All { // the operator has made some of that name
			require.NoError(t, p.PutToken(ctx, p.TokenIn(rdb.Number(number)), machines.DefaultPublisher))
		}
		for range 2 { // as another process
			require.NoError(t, apply(p.TopicIn(1, 1)))
		}
		own := p.TokenIn(0)
		subscribers, err := p.All[0].SMembers(ctx, p.All[0].Namespace()+"subscribers").Result()
		require.NoError(t, err)
		assert.Equal(t, []string{string(own)}, subscribers, "the one of their partition")
		for _, st := range p.Bus.All() {
			name, err := st.ClientName(ctx, own)
			require.NoError(t, err)
			assert.Equal(t, machines.DefaultPublisher, name, "it may publish to topics everywhere")
		}
		for _, topic := range heard {
			p.PublishEvents(topic, 1, 3)
		}
		for number := range p.All {
			p.Relay(rdb.Number(number))
		}
		for _, topic := range heard {
			assert.Equal(t, storetest.UpTo(1, 3), p.Received(0, own, topic), topic)
		}

		taken := p.TopicIn(2, 1)
		p.PublishEvents(taken, 1, 1)
		require.ErrorContains(t, apply(taken), "belongs to the client publisher")
	})
}

// TestLabelsOfAllPartitionsAreToldAndHeardOf has one in each, and their first moves at the same
// moment.
func TestLabelsOfAllPartitionsAreToldAndHeardOf(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		p := storetest.NewPartitions(t, server.Open(t))
		f := machinestest.Beside(t, p.All, nil)
		client := engine.NewClient(engine.ClientConfig{
			Stores: p.Bus, Labels: f.Stores, Ingest: ingest.New(p.Bus, ingest.Options{}),
			Log: slog.New(slog.NewTextHandler(f.Log, nil)), Now: p.Now,
		})
		f.Tell = client.Tell
		to, about := p.TopicIn(1, 0), p.TopicIn(2, 0)
		source := fmt.Appendf(nil, hearingAll, to, about, p.TopicIn(0, 0), p.TopicIn(1, 1))
		next, _, err := definition.Load(definition.File{Content: source})
		require.NoError(t, err)
		next.Source = source
		_, err = client.Apply(ctx, next, nil)
		require.NoError(t, err)

		var names []machines.LabelName
		for number := range p.All {
			for i := 0; len(names) == number; i++ {
				if name := fmt.Sprintf("label-%d", i); p.All[number].Owns("orders/" + name) {
					names = append(names, machines.LabelName(name))
				}
			}
		}
		events := []string{}
		for _, name := range names {
			events = append(events, event(string(about), "create", "https://app.example/orders/"+string(name), `{}`))
		}
		require.NoError(t, client.Hear(ctx, delivery(events...)).Err)
		f.Work()
		for _, name := range names {
			assert.Equal(t, machines.StateName("new"), f.Show("orders", name).State)
		}
		keys := layout.Keys{Namespace: p.All[1].Namespace()}
		assert.Equal(t, "3", p.All[1].HGet(ctx, keys.Topic(to), "counter").Val())
		for _, st := range f.Stores.All() {
			counts, err := st.CountAll(ctx)
			require.NoError(t, err)
			assert.Zero(t, counts[0].Unpublished)
		}
		assert.Empty(t, f.Log.String())
		p.RequireSound()
	})
}

// TestEventsWaitForTheDefinitionsByWhichTheyAreHeard applies definitions to one partition before
// another.
func TestEventsWaitForTheDefinitionsByWhichTheyAreHeard(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx := t.Context()
		p := storetest.NewPartitions(t, server.Open(t))
		f := machinestest.Beside(t, p.All, nil)
		client := engine.NewClient(engine.ClientConfig{Stores: p.Bus, Labels: f.Stores, Log: slog.New(slog.DiscardHandler), Now: p.Now})
		about := p.TopicIn(2, 0)
		source := fmt.Appendf(nil, hearingAll, p.TopicIn(1, 0), about, p.TopicIn(0, 0), p.TopicIn(1, 1))
		next, _, err := definition.Load(definition.File{Content: source})
		require.NoError(t, err)
		next.Source = source
		r, err := engine.NewReplacement(&machines.Definitions{}, next, nil, nil, p.Now())
		require.NoError(t, err)
		require.NoError(t, f.Stores.All()[0].Replace(ctx, r, ""))
		name := "label"
		for !p.All[1].Owns("orders/" + name) {
			name += "+"
		}
		request := delivery(event(string(about), "create", "https://app.example/orders/"+name, `{}`))
		require.ErrorIs(t, client.Hear(ctx, request).Err, bus.ErrUnavailable)
		require.NoError(t, f.Stores.Settle(ctx, p.Now()))
		require.NoError(t, client.Hear(ctx, request).Err)
		assert.Equal(t, machines.StateName("new"), f.Show("orders", machines.LabelName(name)).State)
	})
}
