package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/wire"
)

// circle has two machines that set off each other.
const circle = `
state_machines:
  ping:
    publish: {topic: pings, url: "https://app.example/<label>"}
    states:
      - gate: a
        exit_condition: true
        triggers: [{metadata: go}, {topic: pongs, label: {data: label}, metadata: pong}]
        next: b
      - gate: b
        exit_condition: true
        triggers: [{metadata: go}, {topic: pongs, label: {data: label}, metadata: pong}]
        next: a
  pong:
    publish: {topic: pongs, url: "https://app.example/<label>"}
    states:
      - gate: a
        exit_condition: true
        triggers: [{topic: pings, label: {url: "https://app.example/<label>"}, metadata: ping}]
        next: b
      - gate: b
        exit_condition: true
        triggers: [{topic: pings, label: {url: "https://app.example/<label>"}, metadata: ping}]
        next: c
      - gate: c
        exit_condition: true
        triggers: [{topic: pings, label: {url: "https://app.example/<label>"}, metadata: ping}]
        next: b
`

// delivered hands the events for the machines to them, and runs the resulting work. It returns how
// many there were. Seen is how many of each batch were handed out before.
func (f *onBus) delivered(seen map[string]int) (events int) {
	f.T.Helper()
	var texts []string
	for _, key := range f.Server.Raw.Keys(f.T.Context(), machinestest.Namespace+"batch:*").Val() {
		batch := f.Server.Raw.LRange(f.T.Context(), key, 0, -1).Val()
		if batch[0] != string(f.token(machines.DefaultPublisher)) {
			continue
		}
		for _, packed := range batch[3+seen[key]:] {
			text, err := wire.AppendEventJSON(nil, wire.PackedEvent(packed))
			require.NoError(f.T, err)
			texts = append(texts, string(text))
			seen[key]++
		}
	}
	if len(texts) > 0 {
		require.NoError(f.T, f.hear(texts...).Err)
	}
	f.Now = f.Now.Add(time.Millisecond)
	f.Work()
	return len(texts)
}

// run delivers events until there are no more, or very many were.
func (f *onBus) run(seen map[string]int) (events int) {
	f.T.Helper()
	for events < 1000 {
		n := f.delivered(seen)
		if events += n; n == 0 {
			return events
		}
	}
	f.T.Fatal("the machines set off each other for ever")
	return 0
}

func (f *onBus) moves(machine machines.Name) (hops []int) {
	f.T.Helper()
	label := f.Show(machine, "ann")
	moves, _, err := f.History(f.T.Context(), &label)
	require.NoError(f.T, err)
	for _, move := range moves {
		hops = append(hops, move.Why.Hops)
	}
	return hops
}

// TestMachinesThatSetOffEachOtherArePaused sends a client's change round a circle, until a label is
// paused; that is retried, and then an event of another publisher comes.
func TestMachinesThatSetOffEachOtherArePaused(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(circle))
		seen := map[string]int{}
		f.Create("pong", "ann", `{}`)
		f.run(seen) // so that the creation of one label sets off the other, and not the other way round
		f.Create("ping", "ann", `{}`)
		f.run(seen)
		paused := func() (list []machines.Name) {
			for _, m := range []machines.Name{"ping", "pong"} {
				found, _, err := f.List(t.Context(), m, engine.Filter{Errored: true, Limit: 10})
				require.NoError(t, err)
				if len(found) > 0 {
					list = append(list, m)
				}
			}
			return list
		}
		first := paused()
		require.Len(t, first, 1)
		assert.Equal(t, machines.MaxHops, max(slices.Max(f.moves("ping")), slices.Max(f.moves("pong"))))
		label := f.Show(first[0], "ann")
		assert.Equal(t, machines.ReasonHops, label.LastError)
		assert.True(t, label.Resting)
		assert.Contains(t, f.Log.String(), "paused a label")
		assert.Contains(t, f.Log.String(), fmt.Sprintf("hint=\"`rtm label retry %s ann` has it go on\"", first[0]))
		assert.NotEmpty(t, f.counted(`routemaster_machine_events_total{machine="`+string(first[0])+`",outcome="paused"`))

		require.NoError(t, f.Retry(t.Context(), first[0], "ann"))
		f.Work()
		moves := f.moves(first[0])
		assert.Zero(t, moves[0], "it begins again")
		assert.Empty(t, paused())
		events := f.run(seen)
		assert.InDelta(t, machines.MaxHops+1, events, 2)
		require.Len(t, paused(), 1)

		f.Change("ping", "ann", `{"go":true}`)
		assert.Zero(t, f.moves("ping")[0], "a client's change begins again, too")
		f.run(seen)
		assert.NotEmpty(t, paused())
	})
}

// TestHopsOfAMoveThatIsNotTheLast finds a move that others have followed.
func TestHopsOfAMoveThatIsNotTheLast(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(circle))
		f.Create("ping", "ann", `{}`)
		f.Create("pong", "ann", `{}`)
		f.run(map[string]int{})
		label := f.Show("ping", "ann")
		moves, _, err := f.History(t.Context(), &label)
		require.NoError(t, err)
		for i, move := range moves[:5] {
			hops, err := f.Hops(t.Context(), machines.PublishedMove{Machine: "ping", Label: "ann", At: move.At.UnixMilli(), From: move.From, To: move.To})
			require.NoError(t, err)
			assert.Equal(t, move.Why.Hops, hops, i)
		}
		hops, err := f.Hops(t.Context(), machines.PublishedMove{Machine: "ping", Label: "nobody", At: 1, From: "a", To: "b"})
		require.NoError(t, err)
		assert.Zero(t, hops)
	})
}

// TestEventsOfOthersHaveNoHops has a topic to which no machine publishes.
func TestEventsOfOthersHaveNoHops(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(strings.Replace(circle, "publish: {topic: pongs", "publish: {topic: others", 1)))
		f.Create("ping", "ann", `{}`)
		for range machines.MaxHops + 10 {
			require.NoError(t, f.hear(event("pongs", "update", "https://app.example/ann", `{"label":"ann","from":"a","to":"b"}`)).Err)
			f.Now = f.Now.Add(time.Millisecond)
			f.Work()
		}
		assert.Zero(t, slices.Max(f.moves("ping")))
		assert.True(t, f.Show("ping", "ann").ErroredAt.IsZero())
	})
}
