package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/wire"
)

const telling = `
state_machines:
  orders:
    states:
      - {gate: new, exit_condition: metadata.paid, triggers: [{metadata: paid}], next: paid}
      - {gate: paid, exit_condition: false}
    publish: {topic: moves, url: "https://app.example/<state_machine>/<label>"}
`

// received returns the events that a subscriber has got, which is subscribed to one topic.
func (f *onBus) received(token bus.Token) (events []string) {
	f.T.Helper()
	raw := f.Server.Raw
	for _, key := range raw.Keys(f.T.Context(), machinestest.Namespace+"batch:*").Val() {
		batch := raw.LRange(f.T.Context(), key, 0, -1).Val()
		if batch[0] != string(token) {
			continue
		}
		for _, packed := range batch[3:] {
			text, err := wire.AppendEventJSON(nil, wire.PackedEvent(packed))
			require.NoError(f.T, err)
			var e struct {
				Type, URL string
				Data      json.RawMessage
			}
			require.NoError(f.T, json.Unmarshal(text, &e))
			events = append(events, e.Type+" "+e.URL+" "+string(e.Data))
		}
	}
	return events
}

// follow subscribes a client to the topic of moves.
func (f *onBus) follow(token bus.Token) {
	f.T.Helper()
	hour, all := time.Hour, 10_000
	require.NoError(f.T, f.bus.PutToken(f.T.Context(), token, bus.ClientName(token)))
	require.NoError(f.T, f.bus.Subscribe(f.T.Context(), token, bus.Subscription{
		Callback: "https://x.example", Topics: []bus.TopicName{"moves"}, Timeout: &hour, MaxEvents: &all,
	}, f.Now))
}

func TestMovesArePublished(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(telling))
		f.follow("follower")
		name := machines.LabelName(`a "b"\c`)
		f.Create("orders", name, "{}")
		f.Change("orders", name, `{"paid":true}`)
		require.NoError(t, f.Delete(t.Context(), f.Machine("orders"), name, f.Now))
		f.Work()
		url := "update https://app.example/orders/a%20%22b%22%5Cc "
		assert.Equal(t, []string{
			url + `{"label":"a \"b\"\\c","from":null,"to":"new"}`,
			url + `{"label":"a \"b\"\\c","from":"new","to":"paid"}`,
			url + `{"label":"a \"b\"\\c","from":"paid","to":null}`,
		}, f.received("follower"))
		assert.Equal(t, []string{"3"}, f.counted(`routemaster_machine_moves_published_total{machine="orders"} `))
		assert.Zero(t, f.Server.Raw.Exists(t.Context(), f.Keys.MachineOutbox("orders")).Val())
	})
}

func TestManyMovesArePublishedInTheirOrder(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(telling))
		f.follow("follower")
		want := []string{}
		for i := range 250 { // more than are published at once
			_, err := f.Add(t.Context(), "orders", machines.LabelName(fmt.Sprint(i)), machines.Object{}, f.Now)
			require.NoError(t, err)
			want = append(want, fmt.Sprintf(`update https://app.example/orders/%d {"label":"%d","from":null,"to":"new"}`, i, i))
		}
		f.Work()
		assert.Equal(t, want, f.received("follower"))
	})
}

// TestMovesArePublishedOnce has a worker die after it has published, while more labels move.
func TestMovesArePublishedOnce(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(telling))
		f.follow("follower")
		want := []string{}
		move := func(name string) {
			_, err := f.Add(t.Context(), "orders", machines.LabelName(name), machines.Object{}, f.Now)
			require.NoError(t, err)
			want = append(want, fmt.Sprintf(`update https://app.example/orders/%s {"label":%q,"from":null,"to":"new"}`, name, name))
		}
		move("ann")
		move("ben")
		task := f.Take("dies")
		outbox := f.Server.Raw.LRange(t.Context(), f.Keys.MachineOutbox("orders"), 0, -1).Val()
		require.Zero(t, f.Tell(t.Context(), task).RetryAt)
		require.Equal(t, want, f.received("follower"))
		f.Server.Raw.RPush(t.Context(), f.Keys.MachineOutbox("orders"), outbox) // as it was before the last round trip
		move("later")
		f.Finish(task)
		assert.Equal(t, want, f.received("follower"))
	})
}

func TestAMoveThatIsNoEventIsDropped(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(telling))
		f.follow("follower")
		for _, name := range []machines.LabelName{"ann", machines.LabelName(strings.Repeat("é", 256)), "ben"} {
			_, err := f.Add(t.Context(), "orders", name, machines.Object{}, f.Now)
			require.NoError(t, err)
		}
		f.Work()
		assert.Len(t, f.received("follower"), 2)
		assert.Equal(t, []string{"1"}, f.counted(`routemaster_machine_moves_dropped_total{machine="orders"} `))
	})
}

func TestMovesWaitUntilTheyCanBePublished(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.bus.PutToken(t.Context(), "accounts-token", "accounts"))
		require.NoError(t, f.apply(strings.Replace(telling, "topic: moves,", "topic: moves, publisher: accounts,", 1)))
		f.follow("follower")
		require.NoError(t, f.bus.DeleteToken(t.Context(), "accounts-token"))
		f.Create("orders", "ann", "{}")
		assert.Contains(t, f.Log.String(), "there is no client accounts")
		f.Create("orders", "ben", "{}")
		assert.Empty(t, f.received("follower"))
		require.NoError(t, f.bus.PutToken(t.Context(), "accounts-token", "accounts"))
		f.Pass(time.Minute)
		assert.Len(t, f.received("follower"), 2)
	})
}

// TestOtherDefinitionsFreeMovesThatWait starts with a waiting move whose publisher is gone.
func TestOtherDefinitionsFreeMovesThatWait(t *testing.T) {
	for _, c := range []struct {
		next string
		want int
	}{{telling, 2}, {strings.Split(telling, "    publish:")[0], 0}} {
		eachOnBus(t, func(t *testing.T, f *onBus) {
			require.NoError(t, f.bus.PutToken(t.Context(), "accounts-token", "accounts"))
			require.NoError(t, f.apply(strings.Replace(telling, "topic: moves,", "topic: older, publisher: accounts,", 1)))
			f.follow("follower")
			require.NoError(t, f.bus.DeleteToken(t.Context(), "accounts-token"))
			f.Create("orders", "ann", "{}")
			require.NoError(t, f.apply(c.next))
			f.Create("orders", "ben", "{}")
			f.Pass(time.Minute)
			assert.Len(t, f.received("follower"), c.want)
			assert.Zero(t, f.Server.Raw.Exists(t.Context(), f.Keys.MachineOutbox("orders")).Val())
		})
	}
}

func TestMovesThatCannotBePublishedAreRefused(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		ctx := t.Context()
		require.NoError(t, f.bus.PutToken(ctx, "b", "ben"))
		event, err := wire.ParseEvents([]byte(`{"type":"noop","url":"https://x.example"}`), "moves", 1, wire.Limits{Events: 1, Data: 1})
		require.NoError(t, err)
		require.NoError(t, f.ingest.Publish(ctx, "b", "moves", event, nil))
		var invalid *bus.Invalid
		require.ErrorAs(t, f.apply(telling), &invalid)
		assert.Contains(t, invalid.Detail, "the topic moves belongs to the client ben, not to machines")
		require.ErrorAs(t, f.apply(strings.Replace(telling, "topic: moves,", "topic: moves, publisher: nobody,", 1)), &invalid)
		assert.Contains(t, invalid.Detail, "there is no client nobody")
		require.NoError(t, f.apply(strings.Replace(telling, "topic: moves,", "topic: moves, publisher: ben,", 1)))
	})
}
