package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/test/bustest"
)

// jobTypes are the types of the jobs that are enqueued during the faults: one of each strategy.
var jobTypes = []jobs.Type{
	{Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 100, Concurrency: 5},
	{Name: "pay", Strategy: jobs.AtMostOnce, Attempts: 1, Concurrency: 5},
}

// How jobs are enqueued, and how long a service has for one.
const (
	jobToken   = "jobs--1"
	jobPause   = 30 * time.Millisecond // at most, between two of a type
	jobTimeout = time.Second
	// misbehaves is the share of jobs that their service does not simply take, in %.
	misbehaves = 20
)

// jobService is the service of all jobs. It misbehaves now and then, and records the jobs it is
// sent.
type jobService struct {
	*requester
	*temper

	reporting sync.WaitGroup

	mu sync.Mutex
	// posts is when each job came, enqueued the types of the jobs whose enqueueing was answered.
	posts    map[jobs.ID][]time.Time
	enqueued map[jobs.ID]jobs.TypeName
}

// temper is how a service answers.
type temper struct {
	// well is closed when it is to behave.
	well <-chan struct{}

	mu     sync.Mutex
	random *rand.Rand
}

func newTemper(seed, stream uint64, well <-chan struct{}) *temper {
	return &temper{well: well, random: rand.New(rand.NewPCG(seed, stream))}
}

// draw returns a number up to 99, by which to answer: badly if it is less than misbehaves.
func (t *temper) draw() int {
	select {
	case <-t.well:
		return 99
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.random.IntN(100)
}

// startJobs makes the job types, and a service for their jobs. It returns functions that enqueue
// them until stop is closed, one for each type.
func (c *chaos) startJobs(seed uint64, apis []string, stop, well <-chan struct{}) (enqueue []func(context.Context)) {
	s := &jobService{
		requester: c.newRequester(jobToken, "jobs", apis), temper: newTemper(seed, 400, well),
		posts: map[jobs.ID][]time.Time{}, enqueued: map[jobs.ID]jobs.TypeName{},
	}
	url := c.addProxy(proxyName("workers", jobProxy), serveTLS(c.t, s))
	c.t.Cleanup(s.reporting.Wait)
	c.service = s
	for i, t := range jobTypes {
		t.URL, t.Timeout, t.Retention = url+"/"+string(t.Name), jobTimeout, time.Hour
		t.CreatedAt, t.UpdatedAt = time.Now(), time.Now()
		require.NoError(c.t, c.jobs().CreateType(c.t.Context(), t))
		random := rand.New(rand.NewPCG(seed, uint64(500+i)))
		enqueue = append(enqueue, func(ctx context.Context) { s.enqueueSome(ctx, t.Name, random, stop) })
	}
	return enqueue
}

// jobProxy names the service of the jobs in the name of its proxy.
const jobProxy = "service"

// enqueueSome enqueues jobs until stop is closed and the request under way is acknowledged, or the
// context is done.
func (s *jobService) enqueueSome(ctx context.Context, name jobs.TypeName, random *rand.Rand, stop <-chan struct{}) {
	for {
		id := jobs.NewID()
		path := fmt.Sprintf("/v1/jobs/%s/%s", name, id)
		if !s.insist(ctx, http.MethodPut, path, `{"data":{"n":1.0}}`, http.StatusAccepted) {
			return
		}
		s.mu.Lock()
		s.enqueued[id] = name
		s.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.Int64N(int64(jobPause)))):
		}
	}
}

// ServeHTTP is given a job.
func (s *jobService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var job struct {
		ID      string
		Attempt int
	}
	if err := json.NewDecoder(r.Body).Decode(&job); err != nil { // it was cut off on its way
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, err := jobs.ParseID(job.ID)
	if err != nil {
		s.ledger.complain("a job has the id %q", job.ID)
	}
	s.mu.Lock()
	s.posts[id] = append(s.posts[id], time.Now())
	s.mu.Unlock()
	switch choice := s.draw(); {
	case choice < misbehaves/4:
		w.WriteHeader(http.StatusInternalServerError)
	case choice < misbehaves/2:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case choice < misbehaves*3/4: // it never reports
		w.WriteHeader(http.StatusAccepted)
	case choice < misbehaves:
		panic(http.ErrAbortHandler)
	case choice%2 == 0:
		_, _ = io.WriteString(w, `{"status":"succeeded"}`)
	default:
		s.reporting.Go(func() { s.report(r.URL.Path[1:], job.ID, job.Attempt) })
		w.WriteHeader(http.StatusAccepted)
	}
}

// report reports a success, perhaps before the POST is answered.
func (s *jobService) report(name, id string, attempt int) {
	ctx, cancel := context.WithTimeout(context.Background(), bustest.WaitTimeout)
	defer cancel()
	body := fmt.Sprintf(`{"status":"succeeded","attempt":%d}`, attempt)
	path := fmt.Sprintf("/v1/jobs/%s/%s", name, id)
	// Its deadline may have passed meanwhile.
	s.insist(ctx, http.MethodPost, path, body, http.StatusOK, http.StatusConflict)
}

// jobs are all of the bus.
func (c *chaos) jobs() *jobs.Bus { return jobs.NewBus(c.stores.Partitions()) }

// openJobs is how many jobs have not ended.
func (c *chaos) openJobs() (open int64) {
	counts, err := c.jobs().Counts(c.t.Context(), jobTypes...)
	if err != nil {
		return -1
	}
	for _, of := range counts {
		open += of.Queued + of.InProgress
	}
	return open
}

// requireJobs requires that every job was done. A job that may be tried only once may be done at
// most once.
func (c *chaos) requireJobs(report io.Writer) {
	c.service.reporting.Wait()
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	all, ctx := c.jobs(), c.t.Context()
	ended, repeated := map[string]int{}, 0
	for id, name := range c.service.enqueued {
		job, err := all.Job(ctx, name, id)
		if !assert.NoError(c.t, err, "a %s was acknowledged, and is lost", name) {
			continue
		}
		ended[fmt.Sprint(name, " ", job.Status)]++
		posts := c.service.posts[id]
		if name == "pay" {
			assert.Less(c.t, len(posts), 2, "%s, %s, is tried once; it came at %v", id, job.Reason, posts)
		} else {
			assert.Equal(c.t, jobs.Succeeded, job.Status, job.Reason)
			assert.NotEmpty(c.t, posts)
			repeated += len(posts) - 1
		}
	}
	assert.NotEmpty(c.t, c.service.enqueued)
	fmt.Fprintf(report, "%d jobs enqueued: %v; %d POSTs more than one of a ship\n", len(c.service.enqueued), ended, repeated)
	for _, t := range jobTypes {
		allowed := func(jobs.Type) error { return nil }
		require.NoError(c.t, all.DeleteType(ctx, t.Name, false, time.Now(), allowed), "jobs that have not ended")
	}
	for _, st := range all.All() {
		_, err := st.Purge(ctx, time.Now().Add(2*time.Hour), func() bool { return true })
		require.NoError(c.t, err)
	}
}
