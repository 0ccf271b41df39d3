package web_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// TestRootSeesWhatRunsAndWhatIsNext follows a batch through its queue.
func TestRootSeesWhatRunsAndWhatIsNext(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := webtest.New(t, redis)
		type job struct {
			Queue, Job string
			Arguments  []string
			DueAt      *int64 `json:"due_at"`
			Thread     string
			Batch      *struct {
				ID, Subscriber   string
				Attempts, Events int
			}
		}
		read := func(path string, into any) {
			t.Helper()
			answer := a.Do(webtest.RootKey, "GET", path, "")
			require.Equal(t, 200, answer.Status, answer.Body)
			assert.NotContains(t, answer.Body, webtest.Bob, "no token")
			require.NoError(t, json.Unmarshal([]byte(answer.Body), into))
		}
		var next []job
		var threads struct {
			Active, Silent, More int
			Running              []job
		}
		read("/queues/main", &next)
		assert.Empty(t, next)
		read("/threads", &threads)
		assert.Empty(t, threads.Running)

		a.RequireDone(webtest.Bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/","timeout":0}`)
		a.RequireDone(webtest.Alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
		read("/queues/main?limit=1", &next)
		require.Len(t, next, 1)
		require.NotNil(t, next[0].Batch)
		assert.Equal(t, "bob", next[0].Batch.Subscriber)
		assert.Equal(t, []string{next[0].Batch.ID}, next[0].Arguments)
		assert.Equal(t, [2]int{0, 1}, [2]int{next[0].Batch.Attempts, next[0].Batch.Events})

		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.NotNil(t, taken.Task)
		require.NoError(t, a.Heartbeat(t.Context(), time.Now(), "w1"))
		require.NoError(t, a.Heartbeat(t.Context(), time.Now().Add(-time.Minute), "w2"))
		read("/threads", &threads)
		assert.Equal(t, [3]int{1, 1, 0}, [3]int{threads.Active, threads.Silent, threads.More})
		require.Len(t, threads.Running, 1)
		running := threads.Running[0]
		assert.Equal(t, "main batch w1 bob", running.Queue+" "+running.Job+" "+running.Thread+" "+running.Batch.Subscriber)
		assert.Equal(t, 1, running.Batch.Attempts)

		const id = "job_00000000-0000-4000-8000-000000000001"
		require.Equal(t, 201, a.Do(webtest.Alice, "POST", "/v2/job-types", `{"name":"echo","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"url":"https://x.example/"}`).Status)
		require.Equal(t, 202, a.Do(webtest.Alice, "PUT", "/v1/jobs/echo/"+id, `{"data":1}`).Status)
		next = nil
		read("/queues/jobs", &next)
		require.Len(t, next, 1)
		assert.Equal(t, []string{id}, next[0].Arguments)
		assert.Nil(t, next[0].Batch)
	})
}

// TestABatchBehindOthersIsHeld: it is woken when the others are delivered, long before its entry
// would come up by itself. So that time is not shown.
func TestABatchBehindOthersIsHeld(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := webtest.New(t, redis)
		type job struct {
			DueAt *int64 `json:"due_at"`
			Held  bool
			Batch struct{ Attempts int }
		}
		read := func() (next []job) {
			t.Helper()
			answer := a.Do(webtest.RootKey, "GET", "/queues/main", "")
			require.Equal(t, 200, answer.Status, answer.Body)
			require.NoError(t, json.Unmarshal([]byte(answer.Body), &next))
			return next
		}
		subscribe := func(timeout string) {
			a.RequireDone(webtest.Bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/","max":1,"timeout":`+timeout+`}`)
		}
		publish := func() {
			a.RequireDone(webtest.Alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
		}
		subscribe("0")
		publish()
		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.NotNil(t, taken.Task)
		publish()
		none, err := a.Acquire(t.Context(), bus.QueueMain, "w2", bus.Failing, time.Now())
		require.NoError(t, err)
		require.Nil(t, none.Task, "one of a subscriber at a time")
		assert.Equal(t, []job{{Held: true}}, read())

		// A batch that takes in events is due at its time, and comes before held ones.
		a.RequireDone(webtest.Bob, "PATCH", "/subscriber", `{"max":10,"timeout":60000}`)
		publish()
		next := read()
		require.Len(t, next, 2)
		require.NotNil(t, next[0].DueAt)
		assert.WithinDuration(t, time.Now().Add(time.Minute), time.UnixMilli(*next[0].DueAt), time.Minute)
		assert.Equal(t, []bool{false, true}, []bool{next[0].Held, next[1].Held})

		a.RequireDone(webtest.Bob, "POST", "/subscriber/pause", "")
		for _, one := range read() {
			assert.True(t, one.Held)
			assert.Nil(t, one.DueAt)
		}
	})
}
