package jobs_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
	"routemaster/internal/worker"
)

// soon is the timeout of tests; a wait takes that long only if the test fails.
const soon = time.Minute

// post is a POST that a service got.
type post struct {
	path, user, password, body string
	header                     http.Header
}

// service is a service that records its requests.
type service struct {
	url string

	mu     sync.Mutex
	answer http.HandlerFunc
	posts  []post
}

func newService(t *testing.T, answer http.HandlerFunc) *service {
	s := &service{answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// hang answers nothing until its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler) // to return would answer 200, which may be read all the same
}

// newHTTPS is newService, with a self-signed certificate.
func newHTTPS(t *testing.T, answer http.HandlerFunc) *service {
	s := &service{answer: answer}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	s.posts = append(s.posts, post{r.URL.Path, user, password, string(body), r.Header})
	answer := s.answer
	s.mu.Unlock()
	answer(w, r)
}

// answers has the service answer otherwise from now on.
func (s *service) answers(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *service) got() []post {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts
}

// with answers with a status and a body.
func with(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// servedShop is the jobs of a test, and the services that run them.
type servedShop struct {
	*jobstest.Shop
	config  jobs.RunnerConfig
	log     *rdbtest.Buffer
	metrics *telemetry.Registry
}

// newServedShop makes a shop whose jobs go to a service, as a rule.
func newServedShop(t *testing.T, server *rdbtest.Server, downstream string) *servedShop {
	s := &servedShop{
		Shop: jobstest.NewShop(t, server, time.UnixMilli(1_700_000_000_000).UTC()),
		log:  &rdbtest.Buffer{}, metrics: telemetry.NewRegistry(),
	}
	s.config = jobs.RunnerConfig{
		Client: newClient(t), Downstream: newClient(t), DownstreamURL: downstream, Password: "s3cret",
		Recorder: telemetry.NewRecorder(s.metrics, nil, slog.New(slog.DiscardHandler)),
	}
	return s
}

func newClient(t *testing.T, adjust ...func(*outbound.Config)) *outbound.Client {
	config := outbound.Config{ConnectTimeout: soon, Timeout: soon, MaxIdle: 4, UserAgent: "routemaster/test"}
	for _, f := range adjust {
		f(&config)
	}
	c := outbound.New(config, time.Now)
	t.Cleanup(c.Close)
	return c
}

// runner makes a runner with a clock.
func (s *servedShop) runner(clock func() time.Time) *jobs.Runner {
	return jobs.NewRunner(s.config, slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})), clock)
}

// put makes a type, and enqueues a job of it.
func (s *servedShop) put(name jobs.TypeName, changes ...func(*jobs.Type)) jobs.ID {
	s.T.Helper()
	s.Add(name, changes...)
	return s.Put(name)
}

func at(url string) func(*jobs.Type) { return func(t *jobs.Type) { t.URL = url } }

// run runs all jobs that are due after a while, and returns how many it ran.
func (s *servedShop) run(after time.Duration) (ran int) {
	s.T.Helper()
	s.Pass(after)
	ctx, q := s.T.Context(), s.Queue()
	r := s.runner(func() time.Time { return s.Now })
	for {
		taken, err := q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.Now)
		require.NoError(s.T, err)
		for _, entry := range taken.Discarded {
			r.Discarded(entry)
		}
		if taken.Task == nil {
			return ran
		}
		_, err = q.Complete(ctx, taken.Task, r.Run(ctx, taken.Task), s.Now)
		require.NoError(s.T, err)
		ran++
	}
}

// requireJob requires that a job has a status, so many attempts left, and a reason.
func (s *servedShop) requireJob(id jobs.ID, status jobs.Status, attempts int, reason string) {
	s.T.Helper()
	job := s.Show(id)
	require.Equal(s.T, []any{status, attempts, reason}, []any{job.Status, job.Attempts, job.Reason})
}

// report has a service report.
func (s *servedShop) report(name jobs.TypeName, id jobs.ID, attempt int, now time.Time) {
	_, err := s.Report(context.WithoutCancel(s.T.Context()), name, id, jobs.Report{Attempt: attempt, Status: jobs.Succeeded}, now)
	assert.NoError(s.T, err)
}

// page returns the metrics page.
func (s *servedShop) page() string {
	s.T.Helper()
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(s.T.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// work starts a worker with so many threads, on the real clock.
func (s *servedShop) work(threads int) (stop func()) {
	s.T.Helper()
	r := s.runner(time.Now)
	q := s.Queue()
	w := worker.New([]*queue.Queue{q}, worker.Config{
		Pools: []worker.Pool{{
			Queues: []*queue.Queue{q}, Name: bus.QueueJobs, Kind: bus.JobJob, Threads: threads, ScheduleInterval: 5 * time.Millisecond,
			Lookahead: 20 * time.Millisecond, Discarded: r.Discarded, EndedElsewhere: true,
		}},
		AcquireTimeout: time.Second, RetryAfter: time.Second,
		Handlers: map[bus.JobName]worker.Handler{bus.JobJob: func(ctx context.Context, task *queue.Task) queue.Result { return r.Run(ctx, task) }},
	}, slog.New(slog.NewTextHandler(s.log, nil)), time.Now)
	ctx, cancel := context.WithCancel(s.T.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	s.T.Cleanup(stop)
	return stop
}
