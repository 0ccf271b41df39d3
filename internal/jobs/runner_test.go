package jobs_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

func TestWhatAServiceGets(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down, own := newService(t, with(202, "")), newHTTPS(t, with(200, `{"status":"succeeded"}`))
		s := newServedShop(t, server, down.url+"/base")
		id, other := s.put("invoice.send"), s.put("own", at(own.url+"/hook/secret"))
		require.Equal(t, 2, s.run(0))

		body := func(id jobs.ID) string {
			return fmt.Sprintf(`{"data":{"b":1.50,"a":[]},"attempts":3,"id":%q,"attempt":3}`, id)
		}
		require.Len(t, down.got(), 1)
		got := down.got()[0]
		header := got.header
		got.header = nil
		assert.Equal(t, post{"/base/v1/jobs/invoice.send/" + id.String(), "jobs", "s3cret", body(id), nil}, got)
		assert.Equal(t, []string{"application/json", "application/json", "routemaster/test"},
			[]string{header.Get("Content-Type"), header.Get("Accept"), header.Get("User-Agent")})
		s.requireJob(id, jobs.InProgress, 3, "")
		assert.Equal(t, s.Now.Add(time.Minute), s.Show(id).Deadline)

		require.Len(t, own.got(), 1)
		got = own.got()[0]
		assert.NotContains(t, got.header, "Authorization", "a client has chosen the URL")
		got.header = nil
		assert.Equal(t, post{"/hook/secret", "", "", body(other), nil}, got)
		s.requireJob(other, jobs.Succeeded, 3, "")
		assert.Contains(t, s.page(), `routemaster_jobs_ended_total{job_type="own",status="succeeded"} 1`)
		assert.NotContains(t, s.page(), `routemaster_jobs_ended_total{job_type="invoice.send"`, "its report is to come")
		assert.NotContains(t, s.log.String(), "WARN")
		assert.NotContains(t, s.log.String(), "secret")
	})
}

func TestAServiceThatIsNotReadyCostsNoAttempt(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down := newService(t, with(503, `{"id":"service_unavailable"}`))
		s := newServedShop(t, server, down.url)
		id := s.put("invoice")
		for i, wait := range []time.Duration{0, 500 * time.Millisecond, time.Second} {
			if wait > 0 {
				require.Zero(t, s.run(wait-time.Millisecond), "it is held back")
				wait = time.Millisecond
			}
			if i == 2 {
				down.answers(with(202, ""))
			}
			require.Equal(t, 1, s.run(wait))
		}
		s.requireJob(id, jobs.InProgress, 3, "the service answered 503 Service Unavailable")
		s.report("invoice", id, 3, s.Now)
		s.requireJob(id, jobs.Succeeded, 3, "")
		assert.Contains(t, s.page(), `routemaster_job_attempts_total{job_type="invoice",outcome="held"} 2`)
		assert.Contains(t, s.log.String(), "held back the jobs of a service that is not ready")
	})
}

func TestAServiceThatCannotBeReached(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newServedShop(t, server, "http://127.0.0.1:1") // no service listens there
		id, once := s.put("invoice"), s.put("payment", jobstest.AtMostOnce)
		require.Equal(t, 2, s.run(0))
		s.requireJob(once, jobs.Failed, 0, "the service did not answer: refused")
		s.requireJob(id, jobs.Queued, 2, "the service did not answer: refused")
		assert.WithinRange(t, s.Show(id).RunAfter, s.Now.Add(1600*time.Millisecond), s.Now.Add(2*time.Second))
	})
}

func TestAServiceThatIsSilentMayReport(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down := newService(t, hang)
		s := newServedShop(t, server, down.url)
		s.config.Downstream = newClient(t, func(c *outbound.Config) { c.Timeout = time.Second })
		id := s.put("invoice")
		require.Equal(t, 1, s.run(0))
		s.requireJob(id, jobs.InProgress, 3, "")
		assert.Contains(t, s.log.String(), "awaiting the report of a service that did not answer")
		s.report("invoice", id, 3, s.Now)
		s.requireJob(id, jobs.Succeeded, 3, "")
	})
}

func TestAJobThatExpiredIsNotSent(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down := newService(t, with(202, ""))
		s := newServedShop(t, server, down.url)
		s.put("invoice", func(t *jobs.Type) { t.Paused, t.Concurrency = true, 2 })
		id := s.Put("invoice", func(job *jobs.NewJob) { job.ExpiresAt = s.Now.Add(time.Second) })
		_, err := s.ChangeType(t.Context(), "invoice", func(t *jobs.Type) error { t.Paused = false; return nil })
		require.NoError(t, err)
		require.Equal(t, 1, s.run(time.Second), "the other one")
		s.requireJob(id, jobs.Expired, 3, "")
		assert.NotContains(t, down.got()[0].path, id.String())
		assert.Contains(t, s.page(), `routemaster_jobs_ended_total{job_type="invoice",status="expired"} 1`)
		assert.NotContains(t, s.log.String(), "WARN")
	})
}

// TestAJobWithoutAReportIsTriedAgain has the deadlines of two jobs pass.
func TestAJobWithoutAReportIsTriedAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down := newService(t, with(202, ""))
		s := newServedShop(t, server, down.url)
		id, once := s.put("invoice"), s.put("payment", jobstest.AtMostOnce)
		require.Equal(t, 2, s.run(0))
		require.Zero(t, s.run(time.Minute-time.Millisecond))
		require.Zero(t, s.run(time.Millisecond))
		const reason = "no report before the deadline"
		s.requireJob(id, jobs.Queued, 2, reason)
		s.requireJob(once, jobs.Failed, 0, reason)
		require.Equal(t, 1, s.run(2*time.Second))
		assert.Contains(t, down.got()[2].body, `"attempt":2}`)
		assert.Contains(t, s.page(), `routemaster_job_attempts_lost_total{job_type="invoice"} 1`)
		assert.Contains(t, s.page(), `routemaster_jobs_ended_total{job_type="payment",status="failed"} 1`)
		assert.NotContains(t, s.page(), `routemaster_jobs_ended_total{job_type="invoice"`, "it is tried again")
		assert.Contains(t, s.log.String(), `msg="lost an attempt at a job" job_type=payment id=`+once.String()+` status=failed`)
	})
}

// TestRunnerAtMostOnce has a service close the connection when it has read a second request:
// whether that was acted on is not known.
func TestRunnerAtMostOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		down := newService(t, with(202, ""))
		s := newServedShop(t, server, down.url)
		s.put("invoice")
		require.Equal(t, 1, s.run(0))
		down.answers(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				_ = conn.Close()
			}
		})
		broken := s.put("payment", jobstest.AtMostOnce)
		require.Equal(t, 1, s.run(0))
		s.requireJob(broken, jobs.Failed, 0, "the service did not answer: reset")
		require.Len(t, down.got(), 2)

		down.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		refused := s.put("refund", jobstest.AtMostOnce)
		require.Equal(t, 1, s.run(0))
		s.requireJob(refused, jobs.Failed, 0, "the service answered 503 Service Unavailable")

		// A worker that dies has sent it, or has not.
		dead := s.Put("payment")
		taken, err := s.Queue().Acquire(t.Context(), bus.QueueJobs, "dead", bus.Failing, s.Now)
		require.NoError(t, err)
		require.Equal(t, dead, taken.Task.Payload.(*jobs.Run).ID)
		_, err = s.Queue().Retire(t.Context(), "dead")
		require.NoError(t, err)
		require.Zero(t, s.run(time.Hour))
		s.requireJob(dead, jobs.Failed, 0, "the worker died")
		require.Len(t, down.got(), 3)
		s.report("payment", dead, 1, s.Now)
		s.requireJob(dead, jobs.Succeeded, 1, "")
	})
}

func TestADeniedAddressIsNotDialled(t *testing.T) {
	own := newHTTPS(t, with(202, ""))
	s := newServedShop(t, rdbtest.Embedded(t), "")
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	s.config.Client = newClient(t, func(c *outbound.Config) { c.Deny = deny })
	id, nowhere := s.put("own", at(own.url)), s.put("nowhere")
	require.Equal(t, 2, s.run(0))
	s.requireJob(id, jobs.Queued, 2, "the service did not answer: denied")
	s.requireJob(nowhere, jobs.Queued, 3, "DOWNSTREAM_URL is not set")
	assert.Empty(t, own.got())
	assert.Contains(t, s.log.String(), "DOWNSTREAM_URL is not set")
}

// TestAJobGoesToOneOfManyThreads has the service report before it answers, as it may.
func TestAJobGoesToOneOfManyThreads(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newServedShop(t, server, "")
		s.Now = time.Now()
		ids := make(chan jobs.ID, 1)
		down := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			s.report("invoice", <-ids, 3, time.Now())
			w.WriteHeader(http.StatusAccepted)
		})
		s.config.DownstreamURL = down.url
		stop := s.work(20)
		id := s.put("invoice")
		ids <- id
		require.Eventually(t, func() bool { return s.Show(id).Status == jobs.Succeeded }, soon, time.Millisecond)
		// A type that is made while a worker runs needs no restart, and stops nothing.
		down.answers(with(200, `{"status":"succeeded"}`))
		other := s.put("other")
		require.Eventually(t, func() bool { return s.Show(other).Status == jobs.Succeeded }, soon, time.Millisecond)
		stop()
		assert.Len(t, down.got(), 2)
		assert.NotContains(t, s.log.String(), "WARN")
	})
}

func TestAnIdlePoolStopsAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s := newServedShop(t, server, "")
		rdbtest.Promptly(t, 300*time.Millisecond, func() time.Duration { return rdbtest.Took(s.work(32)) })
	})
}

// TestAStopLosesNothing stops a worker while a service is about to take a job: the worker waits for
// the answer, and the report is taken without it.
func TestAStopLosesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		asked, answer := make(chan struct{}), make(chan struct{})
		down := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			close(asked)
			<-answer
			w.WriteHeader(http.StatusAccepted)
		})
		s := newServedShop(t, server, down.url)
		s.Now = time.Now()
		stop := s.work(2)
		id := s.put("invoice")
		<-asked
		time.AfterFunc(20*time.Millisecond, func() { close(answer) })
		stop()
		job := s.Show(id)
		assert.Equal(t, jobs.InProgress, job.Status)
		assert.NotZero(t, job.Deadline, "it was accepted")
		s.report("invoice", id, 3, time.Now())
		s.requireJob(id, jobs.Succeeded, 3, "")
		assert.Empty(t, server.Raw.Keys(t.Context(), "jobs:*").Val())
	})
}

// TestAJobIsTracedToItsService: a job is part of the trace of the request that enqueued it.
func TestAJobIsTracedToItsService(t *testing.T) {
	exported := make(chan struct{}, 10)
	collector := newService(t, func(http.ResponseWriter, *http.Request) { exported <- struct{}{} })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
	tracer, err := telemetry.NewTracer("worker", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	down := newService(t, with(202, ""))
	s := newServedShop(t, rdbtest.Embedded(t), down.url)
	s.config.Tracer = tracer
	s.put("invoice", func(t *jobs.Type) { t.Paused, t.Concurrency = true, 2 })
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	_, err = s.Enqueue(t.Context(), "invoice", []jobs.NewJob{{ID: jobs.NewID(), Data: []byte("1")}}, "00-"+trace+"-"+parent+"-01", s.Now)
	require.NoError(t, err)
	_, err = s.ChangeType(t.Context(), "invoice", func(t *jobs.Type) error { t.Paused = false; return nil })
	require.NoError(t, err)
	require.Equal(t, 2, s.run(0))
	assert.NotContains(t, down.got()[0].header.Get("Traceparent"), trace)
	got := down.got()[1].header.Get("Traceparent")
	assert.Regexp(t, "^00-"+trace+"-[0-9a-f]{16}-01$", got)
	assert.NotContains(t, got, parent, "it has a span of its own")
	tracer.Close()
	assert.NotEmpty(t, exported)
}

// TestAJobThatItsCallerDoesNotSample tells its service so, and the caller's tracestate.
func TestAJobThatItsCallerDoesNotSample(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+rdbtest.FreeAddress(t))
	tracer, err := telemetry.NewTracer("worker", "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(tracer.Close)
	down := newService(t, with(200, `{"status":"succeeded"}`))
	s := newServedShop(t, rdbtest.Embedded(t), down.url)
	s.config.Tracer = tracer
	s.Add("invoice")
	const trace = "00-0af7651916cd43dd8448eb211c80319c-"
	_, err = s.Enqueue(t.Context(), "invoice", []jobs.NewJob{{ID: jobs.NewID(), Data: []byte("1")}}, trace+"b7ad6b7169203331-00;vendor=a%20b", s.Now)
	require.NoError(t, err)
	require.Equal(t, 1, s.run(0))
	assert.Regexp(t, "^"+trace+"[0-9a-f]{16}-00$", down.got()[0].header.Get("Traceparent"))
	assert.Equal(t, "vendor=a b", down.got()[0].header.Get("Tracestate"))
}
