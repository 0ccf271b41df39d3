package engine_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

const hearing = `
state_machines:
  orders:
    states:
      - gate: new
        exit_condition: metadata.paid
        triggers:
          - {topic: orders, label: {url: "https://app.example/<state_machine>/<label>"}, create: true}
        next: paid
      - gate: paid
        exit_condition: metadata.parcel.sent
        triggers:
          - {topic: parcels, label: {data: order.id}, metadata: parcel}
        next: sent
      - {gate: sent, exit_condition: false}
`

// onBus is machines on a bus.
type onBus struct {
	*machinestest.Fixture
	bus    *store.Store
	client *engine.Client
	ingest *ingest.Ingest
}

func eachOnBus(t *testing.T, test func(*testing.T, *onBus)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := &onBus{Fixture: machinestest.New(t, server)}
		f.bus = store.New(server.Open(t).Partition(machinestest.Namespace), store.Options{IdempotencyKeys: 1000, MaxClientTopics: 1000, MaxTopics: 1000})
		now := func() time.Time { return f.Now }
		f.ingest = ingest.New(store.NewBus(f.bus), ingest.Options{Now: now})
		f.client = engine.NewClient(engine.ClientConfig{
			Stores: store.NewBus(f.bus), Labels: f.Stores, Ingest: f.ingest, Recorder: f.Recorder, Log: slog.New(slog.NewTextHandler(f.Log, nil)), Now: now,
		})
		f.Tell = f.client.Tell
		test(t, f)
		f.RequireSound(t)
	})
}

// apply replaces the definitions, as web does.
func (f *onBus) apply(yaml string) error {
	f.T.Helper()
	next, _, err := definition.Load(definition.File{Content: []byte(yaml)})
	require.NoError(f.T, err)
	next.Source = []byte(yaml)
	_, err = f.client.Apply(f.T.Context(), next, nil)
	return err
}

// hear hands events to the machines, as a delivery.
func (f *onBus) hear(events ...string) outbound.Attempt {
	f.T.Helper()
	return f.client.Hear(f.T.Context(), delivery(events...))
}

// delivery returns a delivery of events.
func delivery(events ...string) outbound.Request {
	body := "[" + strings.Join(events, ",") + "]"
	return outbound.Request{
		Body: func() io.ReadCloser { return io.NopCloser(strings.NewReader(body)) }, Length: int64(len(body)),
	}
}

func event(topic, kind, url, data string) string {
	return fmt.Sprintf(`{"topic":%q,"type":%q,"url":%q,"t":1,"data":%s}`, topic, kind, url, data)
}

// counted returns the values of metrics whose line begins so.
func (f *onBus) counted(prefix string) (values []string) {
	f.T.Helper()
	w := httptest.NewRecorder()
	f.Metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(f.T.Context(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if rest, found := strings.CutPrefix(line, prefix); found {
			values = append(values, strings.TrimSpace(rest))
		}
	}
	return values
}

func (f *onBus) token(name bus.ClientName) bus.Token {
	f.T.Helper()
	all, err := f.bus.Tokens(f.T.Context())
	require.NoError(f.T, err)
	for token, of := range all {
		if of == name {
			return token
		}
	}
	return ""
}

func (f *onBus) subscribed() []string {
	f.T.Helper()
	keys := layout.Keys{Namespace: machinestest.Namespace}
	return f.Server.Raw.SMembers(f.T.Context(), keys.SubscriberTopics(f.token(machines.DefaultPublisher))).Val()
}

func TestEventsMoveLabels(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		assert.ElementsMatch(t, []string{"orders", "parcels"}, f.subscribed())

		url := "https://app.example/orders/"
		require.NoError(t, f.hear(
			event("orders", "create", url+"a%20b", `{"total":12345678901234567890}`),
			event("orders", "update", url+"cc", `{"paid":true}`),
		).Err)
		f.Work()
		label := f.Show("orders", "a b")
		assert.Equal(t, machines.StateName("new"), label.State)
		assert.JSONEq(t, `{"total":12345678901234567890}`, string(label.Metadata))
		assert.Equal(t, machines.StateName("paid"), f.Show("orders", "cc").State, "the event that makes a label sets off its gate")

		require.NoError(t, f.hear(
			event("parcels", "update", "https://x.example/1", `{"order":{"id":"cc"},"sent":true}`),
			event("parcels", "update", "https://x.example/1", `{"order":{"id":77},"sent":true}`),
		).Err)
		f.Work()
		label = f.Show("orders", "cc")
		assert.Equal(t, machines.StateName("sent"), label.State)
		assert.JSONEq(t, `{"paid":true,"parcel":{"order":{"id":"cc"},"sent":true}}`, string(label.Metadata))
		moves, _, err := f.History(t.Context(), &label)
		require.NoError(t, err)
		assert.Equal(t, "topic parcels", moves[0].Why.Trigger)
	})
}

func TestEventsThatAreDroppedAreCounted(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		url := "https://app.example/orders/"
		require.NoError(t, f.hear(event("orders", "create", url+"gone", "null")).Err)
		require.NoError(t, f.Delete(t.Context(), f.Machine("orders"), "gone", f.Now))
		for _, c := range []struct{ topic, kind, url, data, outcome string }{
			{"orders", "update", url + "ann", `{}`, "created"},
			{"orders", "update", url + "ann", `{"x":1}`, "changed"},
			{"orders", "delete", url + "new", `{}`, "unknown"},
			{"orders", "update", url + "gone", `{}`, "deleted"},
			{"orders", "update", "https://app.example/users/ann", `{}`, "unusable"},
			{"orders", "update", url + "a/b", `{}`, "unusable"},
			{"orders", "update", url, `{}`, "unusable"},
			{"orders", "update", url + "ann?version=3", `{}`, "unusable"},
			{"orders", "update", url + "%zz", `{}`, "unusable"},
			{"orders", "update", url + "ann", `[1]`, "unusable"},
			{"orders", "update", url + "ann", `{"x":"` + strings.Repeat("x", machines.MaxMetadata) + `"}`, "invalid"},
			{"parcels", "update", url, `{"order":{"id":"nobody"}}`, "unknown"},
			{"parcels", "update", url, `{"order":{"id":true}}`, "unusable"},
			{"parcels", "update", url, `null`, "unusable"},
			{"elsewhere", "update", url, `{}`, ""},
		} {
			line := fmt.Sprintf("routemaster_machine_events_total{machine=\"orders\",outcome=%q,topic=%q} ", c.outcome, c.topic)
			before := strings.Join(f.counted(line), "")
			all := strings.Join(f.counted("routemaster_machine_events_total"), " ")
			require.NoError(t, f.hear(event(c.topic, c.kind, c.url, c.data)).Err)
			if c.outcome == "" {
				assert.Equal(t, all, strings.Join(f.counted("routemaster_machine_events_total"), " "), "%v", c)
				continue
			}
			assert.NotEqual(t, before, strings.Join(f.counted(line), ""), "%v", c)
		}
		assert.JSONEq(t, `{"x":1}`, string(f.Show("orders", "ann").Metadata))
		assert.Len(t, f.Route("orders", "ann"), 1)
	})
}

// TestAnAccountTellsNoToken publishes, as a client whose name is its token, as on some older buses,
// an event that makes a label: its account has the name by which the client is known elsewhere.
func TestAnAccountTellsNoToken(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		const secret = "legacy-token"
		require.NoError(t, f.apply(hearing))
		require.NoError(t, f.bus.PutToken(t.Context(), secret, secret))
		first, err := wire.ParseEvents([]byte(`{"type":"noop","url":"https://app.example/"}`), "orders", 1, wire.Limits{Events: 1, Data: 1})
		require.NoError(t, err)
		require.NoError(t, f.ingest.Publish(t.Context(), secret, "orders", first, nil))
		require.NoError(t, f.hear(event("orders", "create", "https://app.example/orders/7", "null")).Err)
		accounts, err := account.Read(t.Context(), f.Partitions[0])
		require.NoError(t, err)
		assert.Equal(t, []bus.ClientName{bus.LegacyClientName(secret)}, slices.Collect(maps.Keys(accounts.Kept)))
	})
}

// TestADamagedLabelHoldsUpNoOther delivers a batch with events for two labels; the record of one is
// no hash.
func TestADamagedLabelHoldsUpNoOther(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		damaged := f.Keys.Label("orders", "ann")
		require.NoError(t, f.Server.Raw.Set(t.Context(), damaged, "x", 0).Err())
		url := "https://app.example/orders/"
		require.NoError(t, f.hear(event("orders", "create", url+"ann", "{}"), event("orders", "create", url+"bob", "{}")).Err)
		assert.Equal(t, machines.StateName("new"), f.Show("orders", "bob").State)
		assert.Equal(t, []string{"1"}, f.counted(`routemaster_machine_events_total{machine="orders",outcome="damaged",topic="orders"} `))
		assert.Contains(t, f.Log.String(), "label=ann")
		require.NoError(t, f.Server.Raw.Del(t.Context(), damaged).Err())
	})
}

// TestEventsOfALabelAreTakenInOrder delivers two events for one label in a batch: the first opens
// the gate, the second shuts it.
func TestEventsOfALabelAreTakenInOrder(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		url := "https://app.example/orders/ann"
		heard := make(chan outbound.Attempt)
		go func() {
			heard <- f.hear(event("orders", "create", url, `{"paid":true}`), event("orders", "update", url, `{"paid":false}`))
		}()
		var attempt outbound.Attempt
		for done := false; !done; {
			select {
			case attempt = <-heard:
				done = true
			default:
				f.Work()
			}
		}
		require.NoError(t, attempt.Err)
		label := f.Show("orders", "ann")
		assert.Equal(t, machines.StateName("paid"), label.State, "the first event was evaluated before the second came")
		assert.JSONEq(t, `{"paid":false}`, string(label.Metadata))
	})
}

func TestABatchComesAgainWhileRedisIsAway(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		attempt := f.hear(`{"topic":`)
		require.Error(t, attempt.Err, "what cannot be read is not acknowledged")
		assert.Equal(t, http.StatusServiceUnavailable, attempt.Status)
	})
}
