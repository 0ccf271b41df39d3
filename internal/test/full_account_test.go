package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
	"routemaster/internal/wire"
)

// attacks are ways in which one client may fill Redis: each makes one request of many.
var attacks = map[string]struct {
	requests int
	request  func(n int) (method, path, body string)
	created  int // status
}{
	"labels of 64 KB": {1500, func(n int) (method, path, body string) {
		return "POST", fmt.Sprintf("/state-machines/m/labels/%d", n), `{"metadata":{"x":"` + strings.Repeat("x", 65_000) + `"}}`
	}, http.StatusCreated},
	"job types with much data for their schedules": {1000, func(n int) (method, path, body string) {
		return "POST", "/v2/job-types", fmt.Sprintf(`{"name":"type_%d","delivery_strategy":"at_least_once","attempts":1,"concurrency":1,"url":"https://a.example/",
			"schedule":"0 0 1 1 *","schedule_data":"%s"}`, n, strings.Repeat("x", 100_000))
	}, http.StatusCreated},
	"jobs of 100 KB": {1000, func(int) (method, path, body string) {
		return "PUT", "/v1/jobs/mine/random_id", `{"data":"` + strings.Repeat("x", 100_000) + `"}`
	}, http.StatusAccepted},
	"replays": {100_000, func(int) (method, path, body string) { return "POST", "/v1/jobs/mine/" + replayed + "/replay", "" }, http.StatusCreated},
}

// replayed is the job that is replayed again and again.
const replayed = "job_10000000-0000-4000-8000-000000000000"

// TestAFullAccountLeavesOthersAlone has a client send as much as it can of data that is never
// dropped. It is refused before Redis reaches its high mark: other clients' queues stay.
func TestAFullAccountLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	const mb = 1_000_000
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for name, attack := range attacks {
			t.Run(name, func(t *testing.T) {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				b := bustest.Start(t, server, func(c *app.Config) { c.JobThreads = 0 })
				attacker, victim, other := b.AddClient("attacker"), b.AddClient("victim"), b.AddClient("other")
				subscriber := bustest.NewSubscriber(t, victim)
				subscriber.Subscribe(b, 3_600_000, 100, "widgets")
				for number := range 20 {
					b.Publish(victim, "widgets", number)
				}
				b.Call(bustest.RootKey, "PUT", "/state-machines",
					"state_machines: {m: {states: [{gate: g, exit_condition: false, next: g}]}}", http.StatusOK)
				for _, of := range []string{attacker, other} {
					typeOf := map[string]string{attacker: "mine", other: "theirs"}[of]
					b.Call(of, "POST", "/v2/job-types", fmt.Sprintf(
						`{"name":%q,"delivery_strategy":"at_least_once","attempts":1,"concurrency":1,"url":null}`, typeOf), http.StatusCreated)
				}
				b.Call(attacker, "PUT", "/v1/jobs/mine/"+replayed, `{"data":1}`, http.StatusAccepted)
				b.Call(attacker, "POST", "/v1/jobs/mine/fetch", `{}`, http.StatusOK)
				high := limitMemory(t, b, 8*mb)

				refused := 0
				for n := 0; n < attack.requests && refused < 10; n++ {
					method, path, body := attack.request(n)
					status, text, err := bustest.Send(b.Client, b.API, attacker, method, path, body)
					require.NoError(t, err)
					if status == http.StatusInsufficientStorage {
						refused++
						require.Contains(t, text, "account_full")
						continue
					}
					require.Equal(t, attack.created, status, text)
				}
				assert.Equal(t, 10, refused, "it is refused")
				autodrop(t, b)
				if !server.IsEmbedded() {
					memory, err := b.Stores.First().Partition().Memory(t.Context())
					require.NoError(t, err)
					assert.Less(t, memory.Used, high)
				}
				b.Publish(victim, "widgets", 20)
				b.Call(other, "PUT", "/v1/jobs/theirs/random_id", `{"data":1}`, http.StatusAccepted)
				b.Call(other, "POST", "/state-machines/m/labels/theirs", `{"metadata":{}}`, http.StatusCreated)
				assert.NotContains(t, b.Logged.String(), "dropped the oldest batches")
				assert.Contains(t, b.Call(victim, "GET", "/subscriptions", "", http.StatusOK), `"queued":21`)
			})
		}
	})
}

// limitMemory sets the high mark to room bytes above the used memory, and returns it. The embedded
// Redis does not know how much it uses: then limitMemory sets that in the accounts.
func limitMemory(t *testing.T, b *bustest.Bus, room int64) (high int64) {
	partition := b.Stores.First().Partition()
	if b.Redis.IsEmbedded() {
		b.StopWorker() // it would note that there is no high mark
		require.NoError(t, account.Limits{High: room}.Write(t.Context(), partition))
		return room
	}
	memory, err := partition.Memory(t.Context())
	require.NoError(t, err)
	b.StopWorker()
	b.Config.Memory = bus.MemoryLimits{Max: memory.Used + room + room/2, MinFree: room / 2}
	b.StartWorker()
	autodrop(t, b)
	return memory.Used + room
}

// autodrop has a worker look whether Redis is about to be full, and waits until it has.
func autodrop(t *testing.T, b *bustest.Bus) {
	if b.Redis.IsEmbedded() {
		return
	}
	jobs := storetest.NewQueue(b.Stores.First(), 1)
	for range 2 { // one may have been running
		_, err := jobs.Enqueue(t.Context(), bus.QueueAux, bus.Job{Name: bus.JobAutodrop})
		require.NoError(t, err)
		index := layout.Keys{}.JobsIndex(bus.QueueAux)
		require.Eventually(t, func() bool {
			return !b.Redis.Raw.SIsMember(t.Context(), index, wire.PackJob(bus.Job{Name: bus.JobAutodrop})).Val()
		}, bustest.WaitTimeout, time.Millisecond)
	}
}
