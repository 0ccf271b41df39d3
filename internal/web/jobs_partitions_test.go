package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
	"routemaster/internal/worker"
)

// soon bounds each wait; only a failing test waits that long.
const soon = time.Minute

// partedJobs is the API of a bus with three partitions, with a type in each.
type partedJobs struct {
	*jobsAPI
	names []string
}

func newPartedJobs(t *testing.T, all *store.Bus) *partedJobs {
	p := &partedJobs{jobsAPI: &jobsAPI{webtest.On(t, all), jobs.NewBus(all.Partitions())}}
	bus := storetest.Partitions{All: all.Partitions()}
	for number := range all.All() {
		p.names = append(p.names, bus.TypeIn(rdb.Number(number), 0))
	}
	return p
}

// addTypes makes the types, with members that are given as JSON.
func (p *partedJobs) addTypes(members string) {
	p.T.Helper()
	for _, name := range p.names {
		p.require(201, "POST", "/v2/job-types", fmt.Sprintf(
			`{"name":%q,"delivery_strategy":"at_least_once","attempts":3,"concurrency":9,"retention":60,%s}`, name, members))
	}
}

// work runs a worker with the jobs of all partitions, until the test ends or it is stopped.
func (p *partedJobs) work(all *store.Bus, downstream string) (stop func()) {
	client := outbound.New(outbound.Config{ConnectTimeout: soon, Timeout: soon}, time.Now)
	run := jobs.NewRunner(jobs.RunnerConfig{Client: client, Downstream: client, DownstreamURL: downstream}, slog.New(slog.DiscardHandler), p.now)
	var registries []*queue.Queue
	for _, st := range all.All() {
		registries = append(registries, storetest.NewQueue(st, 1))
	}
	w := worker.New(registries, worker.Config{
		Pools: []worker.Pool{{
			Queues: p.jobs.Queues(), Name: bus.QueueJobs, Kind: bus.JobJob, Threads: 4,
			ScheduleInterval: time.Millisecond, Lookahead: 10 * time.Millisecond, Discarded: run.Discarded, EndedElsewhere: true,
		}},
		AcquireTimeout: time.Second, RetryAfter: soon, Handlers: map[bus.JobName]worker.Handler{bus.JobJob: run.Run},
	}, slog.New(slog.DiscardHandler), p.now)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		client.Close()
	})
	p.T.Cleanup(stop)
	return stop
}

func (p *partedJobs) now() time.Time { return p.Clock() }

// TestReplaysOfTwoTypesHaveTwoIDs replays jobs with one id and one key, of types of several
// partitions.
func TestReplaysOfTwoTypesHaveTwoIDs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		divided := storetest.NewPartitions(t, redis.Open(t))
		p := newPartedJobs(t, divided.Bus)
		p.Clock = func() time.Time { return start }
		p.addTypes(`"url":null`)
		copies := map[string]bool{}
		for _, name := range p.names {
			p.require(204, "DELETE", p.put(name, 1), "")
			copied := p.DoOnce(alice, "POST", "/v1/jobs/"+name+"/"+jobID(1)+"/replay", "", "key")
			require.Equal(t, 201, copied.Status, copied.Body)
			copies[copied.Body[:len(`{"id":"`+jobID(1))]] = true
		}
		assert.Len(t, copies, len(p.names))
		path := "/v1/jobs/" + p.names[0] + "/" + jobID(2)
		p.put(p.names[0], 2)
		p.require(204, "DELETE", path, "")
		named := p.DoOnce(alice, "POST", path+"/replay", "", "key")
		assert.Equal(t, named.Body, p.DoOnce(alice, "POST", "/v1/jobs/"+jobID(2)+"/replay", "", "key").Body)
	})
}

// TestJobsOfSeveralPartitions go through their lives as on one Redis.
func TestJobsOfSeveralPartitions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		divided := storetest.NewPartitions(t, redis.Open(t))
		p := newPartedJobs(t, divided.Bus)
		var ahead atomic.Int64
		began := time.Now() // jobs that no thread may take are put off, so the clock must go on
		p.Clock = func() time.Time { return start.Add(time.Since(began) + time.Duration(ahead.Load())) }
		accepted := make(chan string, 10)
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			accepted <- r.URL.Path
		}))
		t.Cleanup(service.Close)
		p.addTypes(`"schedule":"* * * * *"`)
		stop := p.work(divided.Bus, service.URL)

		// Enqueued, handed over by the worker, reported, looked up, replayed and listed.
		want := map[string]bool{}
		for n, name := range p.names {
			want[p.put(name, n)] = true
			p.require(202, "POST", "/v1/jobs/"+name, fmt.Sprintf(`[{"id":%q,"data":1,"run_after":"2026-03-01T00:00:00Z"}]`, jobID(10+n)))
		}
		for range p.names {
			path := receive(t, accepted)
			assert.True(t, want[path], path)
			delete(want, path)
		}
		for n, name := range p.names {
			path := "/v1/jobs/" + name + "/" + jobID(n)
			p.require(200, "POST", path, `{"status":"succeeded","attempt":3}`)
			assert.Equal(t, "succeeded", p.show(path).Status)
			assert.Equal(t, name, p.show("/v1/jobs/"+jobID(n)).Name, "whichever partition has it")
			p.refuse("GET", "/v1/jobs/"+p.names[(n+1)%3]+"/"+jobID(n), "", 404, "not_found")
			p.require(201, "POST", "/v1/jobs/"+jobID(n)+"/replay", "")
			assert.Contains(t, receive(t, accepted), "/"+name+"/")
		}
		assert.ElementsMatch(t, []string{jobID(0), jobID(1), jobID(2)}, p.list("/v1/archived-jobs"))
		assert.ElementsMatch(t, []string{jobID(10), jobID(11), jobID(12)}, p.list("/v1/jobs?status=queued"))
		assert.Len(t, p.list("/v1/jobs?status=in-progress"), 3)
		page := p.Do(alice, "GET", "/v1/jobs?limit=2", "")
		assert.Contains(t, page.Header.Get("Link"), `rel="next"`)
		assert.Equal(t, []string{jobID(11)}, p.list("/v1/jobs?status=queued&name="+p.names[1]))

		// Types in different partitions may each have a job with the same id.
		p.require(202, "PUT", "/v1/jobs/"+p.names[1]+"/"+jobID(0), `{"data":1,"run_after":"2026-03-01T00:00:00Z"}`)
		p.refuse("GET", "/v1/jobs/"+jobID(0), "", 409, "conflict")
		p.refuse("POST", "/v1/jobs/"+jobID(0)+"/replay", "", 409, "conflict")
		assert.Equal(t, "succeeded", p.show("/v1/jobs/"+p.names[0]+"/"+jobID(0)).Status)

		// Schedules, and the deletion of archived jobs.
		ahead.Store(int64(2 * time.Minute))
		_, tasks := jobs.SpareTasksOf(p.jobs, nil, slog.New(slog.DiscardHandler), p.now)
		for _, task := range tasks {
			require.NoError(t, task.Work(t.Context()))
		}
		scheduled := map[string]bool{}
		for range p.names {
			scheduled[strings.Split(receive(t, accepted), "/")[3]] = true
		}
		assert.Len(t, scheduled, 3)
		assert.Empty(t, p.list("/v1/archived-jobs"))
		stop()

		var types []struct {
			Name   string
			Counts map[string]int64
		}
		require.NoError(t, json.Unmarshal([]byte(p.require(200, "GET", "/v2/job-types", "")), &types))
		require.Len(t, types, 3)
		for _, shown := range types {
			assert.EqualValues(t, 2, shown.Counts["in_progress"], shown.Name)
			p.require(200, "PATCH", "/v2/job-types/"+shown.Name, `{"paused":true,"schedule":null}`)
			p.require(409, "DELETE", "/v2/job-types/"+shown.Name, "")
			p.require(204, "DELETE", "/v2/job-types/"+shown.Name+"?force=true", "")
		}
		assert.Empty(t, p.list("/v1/jobs"))
		divided.RequireSound()
	})
}

func receive(t *testing.T, from chan string) string {
	t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(soon):
		require.Fail(t, "nothing comes")
		return ""
	}
}

// TestAPartitionIsAway makes a partition unavailable: requests for its types get 503, as lists do.
// All else goes on, waiting fetches too.
func TestAPartitionIsAway(t *testing.T) {
	all, servers := storetest.Apart(t, storetest.PartitionCount)
	p := newPartedJobs(t, store.NewBus(all...))
	p.addTypes(`"url":null`)
	for n, name := range p.names {
		p.put(name, n)
		assert.Equal(t, 3, p.fetch(name))
	}
	url := p.Run()
	fetched := make(chan string, len(p.names))
	for _, name := range p.names {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs/"+name+"/fetch", strings.NewReader(`{"wait":30000}`))
			assert.NoError(t, err)
			p.Authorize(r, alice)
			resp, err := http.DefaultClient.Do(r)
			if !assert.NoError(t, err) {
				fetched <- ""
				return
			}
			text, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.NoError(t, resp.Body.Close())
			fetched <- fmt.Sprint(resp.StatusCode, string(text))
		}()
	}
	servers[1].Kill(t)
	assert.Contains(t, receive(t, fetched), "503", "who waits for jobs there")
	for n, name := range p.names {
		status := func(ok int) int {
			if n == 1 {
				return 503
			}
			return ok
		}
		path := "/v1/jobs/" + name + "/"
		p.require(status(202), "PUT", path+jobID(10+n), `{"data":1}`)
		p.require(status(200), "POST", path+jobID(n), `{"status":"succeeded","attempt":3}`)
		p.require(status(200), "GET", path+jobID(n), "")
		p.require(status(200), "GET", "/v2/job-types/"+name, "")
		p.require(status(200), "PATCH", "/v2/job-types/"+name, `{"attempts":4}`)
		p.require(status(200), "GET", "/v1/jobs?name="+name, "")
		p.require(status(201), "POST", path+jobID(n)+"/replay", "")
	}
	for range 2 {
		assert.Contains(t, receive(t, fetched), "200")
	}
	for _, path := range []string{"/v2/job-types", "/v1/jobs", "/v1/archived-jobs", "/v1/jobs/" + jobID(0)} {
		p.require(503, "GET", path, "")
	}
}
