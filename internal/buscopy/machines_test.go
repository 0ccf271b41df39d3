package buscopy_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

const hearingYAML = `
state_machines:
  hearing:
    states:
      - gate: new
        exit_condition: false
        triggers: [{topic: %s, label: {url: "https://app.example/<label>"}, create: true}]
`

// client is the machines' own of a bus, as each process makes one.
func (s *side) client() *engine.Client {
	return engine.NewClient(engine.ClientConfig{
		Stores: s.Bus, Labels: engine.NewBus(s.partitions), Ingest: ingest.New(s.Bus, ingest.Options{}),
		Log: slog.New(slog.DiscardHandler), Now: s.clock,
	})
}

// hear applies machines that hear of a topic, and has workers tidy up.
func (s *side) hear(of bus.TopicName) {
	s.t.Helper()
	ctx := s.t.Context()
	source := fmt.Appendf(nil, hearingYAML, of)
	next, _, err := definition.Load(definition.File{Content: source})
	require.NoError(s.t, err)
	next.Source = source
	client := s.client()
	_, err = client.Apply(ctx, next, nil)
	require.NoError(s.t, err)
	for range 3 {
		require.NoError(s.t, client.Tidy(ctx))
	}
}

// TestMachinesHearOnceAfterACopy copies to other partitions than the token of the machines' own
// client was made for: it gets queued and later events once, and follows later definitions.
func TestMachinesHearOnceAfterACopy(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		own := bus.Token("own--1")
		for rdb.PartitionOf(string(own), 3) == 0 || rdb.PartitionOf(string(own), 5) == 0 {
			own += "1"
		}
		last := newSide(t, server, server.Open(t), 0)
		last.register(storetest.Publisher)
		require.NoError(t, last.PutToken(t.Context(), own, machines.DefaultPublisher))
		last.hear(topic(0))
		for i, count := range []int{3, 5, 0} {
			last.publish(topic(i), 1, 2)
			require.NoError(t, storetest.NewWorker(last.Bus, last.clock).Relay(t.Context(), storetest.Start))
			to := another(t, server)
			next := newSide(t, to, to.Open(t), count)
			requireCopied(last, next)
			next.hear(topic(i))
			next.publish(topic(i), 3, 4)
			assert.Equal(t, map[bus.Token]map[bus.TopicName][]int{own: {topic(i): storetest.UpTo(1, 4)}}, next.deliver(t.Context()))
			next.hear(topic(i + 1))
			assert.Equal(t, []string{string(topic(i + 1))}, next.topics(own), "it is the one that follows the definitions")
			last = next
		}
		storetest.RequireAllSound(t, last.Bus)
	})
}

// topics returns the topics of all subscribers; there must be one subscriber.
func (s *side) topics(of bus.Token) []string {
	s.t.Helper()
	var all []string
	for _, p := range s.partitions {
		subscribers, err := p.SMembers(s.t.Context(), p.Namespace()+"subscribers").Result()
		require.NoError(s.t, err)
		all = append(all, subscribers...)
	}
	require.Equal(s.t, []string{string(of)}, all)
	p := s.Of(of).Partition()
	topics, err := p.SMembers(s.t.Context(), p.Namespace()+"topics:"+string(of)).Result()
	require.NoError(s.t, err)
	return topics
}
