package web_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/clock"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb/rdbtest"
)

func TestTheOverview(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		a := newAPI(t, server)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/"}`)
		a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
		heartbeat := samples.NewHeartbeat(a.First().Partition(), overview.Process{Kind: "worker", Version: "v1", Threads: 2}, nil, clock.New(time.Now, nil))
		require.NoError(t, heartbeat.Beat(t.Context()))
		nodes := map[string]bool{}
		for _, st := range a.All() {
			p := st.Partition()
			nodes[p.Node()] = true
			limits := account.Limits{Clients: account.Clients{Each: 9000, Named: map[bus.ClientName]int64{"bob": 5}}}
			require.NoError(t, limits.Write(t.Context(), p))
		}
		first := a.First().Partition()
		require.NoError(t, first.HSet(t.Context(), layout.Keys{Namespace: first.Namespace()}.Accounts(), "alice", 7000).Err())
		for who, hidden := range map[string]bool{bob: true, rootKey: false} {
			got := a.Do(who, "GET", "/overview", "")
			require.Equal(t, http.StatusOK, got.Status)
			var figures overview.Figures
			require.NoError(t, json.Unmarshal([]byte(got.Body), &figures))
			assert.Equal(t, int64(1), figures.Queued)
			require.Len(t, figures.Subscribers, 1)
			assert.Equal(t, "bob", figures.Subscribers[0].Name)
			require.Len(t, figures.Topics, 1)
			assert.Equal(t, "alice", figures.Topics[0].Publisher)
			require.Len(t, figures.Clients, 2)
			assert.Equal(t, overview.Client{Name: "alice", Kept: 7000, Limit: new(9000 * int64(len(nodes))), Share: 7.0 / 9}, figures.Clients[0])
			assert.Equal(t, []any{"bob", 5 * int64(len(nodes))}, []any{figures.Clients[1].Name, *figures.Clients[1].Limit})
			assert.Positive(t, figures.Clients[1].Queued)
			require.Len(t, figures.Processes, 1)
			assert.Equal(t, hidden, figures.Processes[0].Host == "" && figures.Processes[0].PID == 0, who)
			for _, token := range []string{alice, bob} {
				assert.NotContains(t, got.Body, token)
			}
		}
	})
}

func TestThereIsNoHistoryYet(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	for path, want := range map[string]string{
		"":                           `{"of":"bus","range":"15m","step_seconds":10,"ends_at":null}`,
		"?of=topic/a%2Fb&range=6h":   `{"of":"topic/a/b","range":"6h","step_seconds":120,"ends_at":null}`,
		"?of=subscriber/x&range=24h": `{"of":"subscriber/x","range":"24h","step_seconds":600,"ends_at":null}`,
	} {
		assert.Equal(t, want, a.Do(alice, "GET", "/overview/series"+path, "").Body, path)
	}
	for _, query := range []string{"of=topic", "of=topic/", "of=all", "range=1h", "of=bus&of=bus", "x=1"} {
		assert.Equal(t, 400, a.Problem(alice, "GET", "/overview/series?"+query, "").Status, query)
	}
}

func TestAHistoryIsServed(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.Record(t.Context()))
	var series map[string]any
	got := a.Do(alice, "GET", "/overview/series", "")
	require.NoError(t, json.Unmarshal([]byte(got.Body), &series))
	assert.NotNil(t, series["ends_at"])
	for name, value := range map[string]any{"queued_events": 0.0, "health_points": 100.0, "published_per_second": nil, "busy_share": nil} {
		column := series[name].([]any)
		require.Len(t, column, overview.Fast.Points, name)
		assert.Equal(t, value, column[len(column)-1], name)
	}
}

func TestAnOverviewOfNothing(t *testing.T) {
	server := rdbtest.Real(t)
	a := newAPI(t, server)
	a.Do(rootKey, "GET", "/topics", "") // so that the caller is known
	server.Kill(t)
	assert.Equal(t, http.StatusServiceUnavailable, a.Problem(rootKey, "GET", "/overview", "").Status)
	server.Restart(t)
}
