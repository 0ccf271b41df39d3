package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
)

// DownstreamUser is the user name of a POST below the operator's URL.
const DownstreamUser = "jobs"

// RunnerConfig says how to run jobs.
type RunnerConfig struct {
	// Client sends the jobs of types that have a URL of their own, Downstream all other jobs.
	Client, Downstream *outbound.Client
	// DownstreamURL is the operator's URL, without a slash at its end; empty if there is none.
	DownstreamURL string
	// Password is sent below DownstreamURL, and nowhere else: a client chooses the URL of a type, and
	// would learn the password that opens the services of all others. A service at such a URL can
	// authenticate the bus by a secret in the URL's path.
	Password string
	// Confirm, if given, makes replicas confirm that a worker has taken a job; a job that is tried
	// once at most is not sent before: see [Store.Confirm].
	Confirm func(ctx context.Context, name TypeName, id ID, worker bus.WorkerID) error
	// Tracer, if given, makes a span of each attempt.
	Tracer *telemetry.Tracer
	// Recorder counts the attempts. It may be nil.
	Recorder *telemetry.Recorder
}

// Runner hands jobs to their services. It is safe for concurrent use.
type Runner struct {
	config   RunnerConfig
	observer observer
	once     once
	now      func() time.Time
}

// NewRunner makes a runner.
func NewRunner(config RunnerConfig, log *slog.Logger, now func() time.Time) *Runner {
	return &Runner{
		config: config,
		observer: observer{
			recorder: config.Recorder, tracer: config.Tracer, log: log, now: now,
		},
		once: once{confirm: config.Confirm, now: now, sent: map[sender]sending{}, until: map[string]time.Time{}},
		now:  now,
	}
}

// Run posts a task's job to its service. It is the handler of [bus.JobJob].
func (r *Runner) Run(ctx context.Context, task *queue.Task) queue.Result {
	run := task.Payload.(*Run)
	ctx, observation := r.observer.begin(ctx, run)
	var attempt outbound.Attempt
	d, decided := r.begin(ctx, task, run)
	if !decided {
		attempt = r.post(ctx, run)
		d = decide(run, attempt, r.now(), rand.Float64())
	}
	observation.end(ctx, attempt, d)
	return queue.Result{RetryAt: d.retryAt, Detail: d.Outcome}
}

// begin decides about a job that cannot, or must not, be sent; if it does not decide, the job is to
// be sent.
func (r *Runner) begin(ctx context.Context, task *queue.Task, run *Run) (d decision, decided bool) {
	switch {
	case run.URL == "" && r.config.DownstreamURL == "":
		return noAddress(run, r.now()), true
	case run.Strategy == AtMostOnce:
		return r.once.begin(ctx, task, run)
	default:
		return d, false
	}
}

// post sends a job. One that is to be tried once at most is sent once at most.
func (r *Runner) post(ctx context.Context, run *Run) outbound.Attempt {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	telemetry.Propagate(ctx, header)
	body := bodyOf(run)
	request := outbound.Request{
		URL: run.URL, Header: header, KeepBody: keepReport, Once: run.Strategy == AtMostOnce,
		Body: func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }, Length: int64(len(body)),
	}
	if run.URL != "" {
		return r.config.Client.Send(ctx, request)
	}
	request.URL = fmt.Sprintf("%s/v1/jobs/%s/%s", r.config.DownstreamURL, run.Type, run.ID)
	request.User, request.Password = DownstreamUser, r.config.Password
	return r.config.Downstream.Send(ctx, request)
}

// bodyOf returns the body for a service: the data as it was enqueued, how many attempts are left,
// and the attempt, which its report has to name and which is the same number.
func bodyOf(run *Run) []byte {
	var b bytes.Buffer
	b.Grow(len(run.Data) + 100)
	attempt := strconv.Itoa(run.Attempts)
	b.WriteString(`{"data":`)
	b.Write(run.Data)
	b.WriteString(`,"attempts":` + attempt + `,"id":"` + run.ID.String() + `","attempt":` + attempt + `}`)
	return b.Bytes()
}
