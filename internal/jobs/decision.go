package jobs

import (
	"fmt"
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
)

// maxHold bounds how long a service may have the jobs of its type held back.
const maxHold = time.Hour

// decision is the consequence of an attempt.
type decision struct {
	Outcome
	// retryAt is when the job comes up again; zero if it has ended.
	retryAt time.Time
}

// ended is the status that a job ended with; empty if it has not.
func (d *decision) ended(run *Run) Status {
	switch {
	case d.Result == RunSucceeded:
		return Succeeded
	case d.Result == RunFailed && d.retryAt.IsZero(),
		d.Result == RunHeld && run.Strategy == AtMostOnce:
		return Failed
	default:
		return ""
	}
}

// decide decides the consequence of a POST. Chance, in [0, 1), spreads the retries.
func decide(run *Run, a outbound.Attempt, now time.Time, chance float64) decision {
	d := decision{Outcome: Outcome{Standing: bus.Proven, Status: a.Status, Public: isShown(run, a)}}
	if a.Status/100 != 2 {
		d.Excerpt = bus.Excerpt(string(a.Body), maxExcerpt)
	}
	if a.Failure() == bus.EndpointFailure {
		d.Standing = bus.Failing
	}
	switch {
	case a.Err == nil:
		d.answered(run, a, now, chance)
	case a.Doubtful: // the next POST is over a new connection, and decides
		d.Result, d.Standing, d.retryAt = RunAgain, run.Standing, now
		d.Reason = reason(run, a)
	case a.Error == bus.ErrorTimeout: // the service may have the job, and may report on it
		d.accepted(run, now)
	case isHold(a.Status):
		d.held(a.Wait(Hold(run.Holds+1), maxHold), now)
		d.Reason = reason(run, a)
	default:
		d.failed(run, false, now, chance)
		d.Reason = reason(run, a)
	}
	return d
}

// isHold reports whether a status asks for time.
func isHold(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// answered decides about a job that its service has taken, and may have done.
func (d *decision) answered(run *Run, a outbound.Attempt, now time.Time, chance float64) {
	report, err := readReport(a)
	switch report.Status {
	case Succeeded:
		d.Result = RunSucceeded
	case Failed:
		d.Reported, d.Reason = true, ReportedError(report.Error)
		d.failed(run, report.Final, now, chance)
	default:
		d.accepted(run, now)
		if err != nil {
			d.Reason = shownTo(run, a, "the report in the answer could not be read", "the report in the answer "+err.Error())
		}
	}
}

func (d *decision) accepted(run *Run, now time.Time) {
	d.Result, d.retryAt = RunAccepted, now.Add(run.Timeout)
}

func (d *decision) held(wait time.Duration, now time.Time) {
	d.Result, d.retryAt = RunHeld, now.Add(wait)
}

// failed decides about an attempt that failed. Final means that there is to be no other.
func (d *decision) failed(run *Run, final bool, now time.Time, chance float64) {
	d.Result = RunFailed
	if left := run.Attempts - 1; left > 0 && !final && run.Strategy != AtMostOnce {
		d.retryAt = now.Add(Backoff(run.MaxAttempts, left, chance))
	}
}

// reason says why an attempt failed, for clients that look the job up. If a client chose the
// address and it is not public, clients learn neither the answer nor why it could not be reached.
func reason(run *Run, a outbound.Attempt) string {
	const silent = "the service did not answer: "
	full, shown := silent+a.Error, silent+bus.ShownError(a.Error, false)
	if a.Error == bus.ErrorTLS {
		if fault := bus.CertificateFault(a.Err.Error()); fault != "" {
			full += ": " + fault
		}
	}
	if a.Doubtful {
		full = "the service did not answer over a connection that was used before; the job is posted again over a new one"
	}
	if a.Status > 0 {
		full, shown = fmt.Sprintf("the service answered %d %s", a.Status, http.StatusText(a.Status)), "the service did not take the job"
	}
	return shownTo(run, a, shown, full)
}

// shownTo is a reason, which clients may see in full of a public address, or the operator's.
func shownTo(run *Run, a outbound.Attempt, shown, full string) string {
	if isShown(run, a) {
		return full
	}
	return bus.HidingReason(shown, full)
}

// isShown reports whether clients may read the answer to an attempt: of a public address, or of one
// that the operator chose.
func isShown(run *Run, a outbound.Attempt) bool { return a.Public || run.URL == "" }

// noAddress is the decision about a job that this worker cannot send anywhere. Its attempt is not
// lost, because the operator is at fault, unless it must not be tried again.
func noAddress(run *Run, now time.Time) decision {
	d := decision{Outcome: Outcome{Standing: run.Standing, Reason: "DOWNSTREAM_URL is not set"}}
	if run.Strategy == AtMostOnce {
		d.Result = RunFailed
	} else {
		d.held(Hold(run.Holds+1), now)
	}
	return d
}
