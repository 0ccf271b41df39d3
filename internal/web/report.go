package web

import (
	"errors"
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// postReport takes a service's report on an attempt of a job.
func (h *jobHandlers) postReport(w http.ResponseWriter, r *http.Request) {
	report, err := h.readReport(w, r)
	var id jobs.ID
	if err == nil {
		id, err = idParam(r)
	}
	if err == nil {
		err = h.report(r, id, report)
	}
	if err != nil {
		h.Fail(w, r, h.explained(r, id, err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

// report stores a report on the job in a request's path.
func (h *jobHandlers) report(r *http.Request, id jobs.ID, report jobs.Report) error {
	name := nameParam(r)
	status, err := h.of(r, name).Report(r.Context(), name, id, report, h.Now())
	switch {
	case errors.Is(err, jobs.ErrStaleAttempt):
		h.config.Recorder.Count(telemetry.JobRequests, 1, telemetry.Report, "stale")
	case err != nil:
	case status == "":
		h.config.Recorder.Count(telemetry.JobRequests, 1, telemetry.Report, "repeated")
	default:
		h.countReport(string(name), status)
	}
	return err
}

// countReport counts a report after which a job has a status.
func (h *jobHandlers) countReport(name string, status jobs.Status) {
	h.config.Recorder.Count(telemetry.JobReports, 1, name, string(status))
	if status.IsArchived() {
		h.config.Recorder.Count(telemetry.EndedJobs, 1, name, string(status), telemetry.Web)
	} else {
		h.config.Recorder.Count(telemetry.JobOutcomes, 1, name, telemetry.Retried)
	}
}

// sentReport is the report on an attempt at a job.
type sentReport struct {
	Status *jobs.Status `json:"status" api:"required enum=succeeded|failed"`
	// The attempt that it is about: `attempt` of when the job was given.
	Attempt *int64 `json:"attempt" api:"required minimum=1 maximum=32767"`
	// Whether a failed job is to be tried again, if there are attempts left. True if left out or
	// null. Once the deadline has ended the attempt, a failure to be tried again gets 409; false
	// still ends the job while its retry waits.
	Retryable *bool `json:"retryable"`
	// Why it failed: the `reason` of the job from then on, and the `error` of the attempt. Of more
	// than 4,096 bytes the rest is cut.
	Error *string `json:"error"`
}

// readReport reads a report.
func (h *jobHandlers) readReport(w http.ResponseWriter, r *http.Request) (report jobs.Report, err error) {
	var sent sentReport
	if err := h.ReadJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return report, err
	}
	if sent.Status == nil {
		return report, missing("/status", "succeeded or failed")
	}
	if report.Attempt, err = readAttempt(sent.Attempt); err != nil {
		return report, err
	}
	report.Status = *sent.Status
	if report.Status != jobs.Succeeded && report.Status != jobs.Failed {
		return report, &bus.Invalid{Pointer: "/status", ID: "invalid_status", Detail: "must be succeeded or failed"}
	}
	report.Final = sent.Retryable != nil && !*sent.Retryable
	if sent.Error != nil {
		report.Error = jobs.ReportedError(*sent.Error)
	}
	return report, nil
}

// readAttempt reads the attempt that a request is about.
func readAttempt(sent *int64) (int, error) {
	switch {
	case sent == nil:
		return 0, missing("/attempt", "the one that the job was given with")
	case *sent > jobs.MaxAttempts:
		return 0, bus.Invalidf("/attempt", "must be at most %d", jobs.MaxAttempts)
	case *sent < 1:
		return 0, invalidParameter("/attempt", "must be at least 1")
	}
	return int(*sent), nil
}

// deadlineView is how long a service has for a job.
type deadlineView struct {
	// Until when to report.
	Deadline string `json:"deadline" api:"format=date-time"`
}

// postExtend gives a service more time for a job: so much from now on.
func (h *jobHandlers) postExtend(w http.ResponseWriter, r *http.Request) {
	name := nameParam(r)
	attempt, timeout, err := h.readExtend(w, r)
	var id jobs.ID
	if err == nil {
		id, err = idParam(r)
	}
	var deadline time.Time
	if err == nil {
		deadline, err = h.of(r, name).Extend(r.Context(), name, id, attempt, timeout, h.Now())
	}
	h.RespondJSON(w, r, deadlineView{timestamp(deadline)}, h.explained(r, id, err))
}

// sentExtension is how much more time a service is to have for a job.
type sentExtension struct {
	Attempt *int64 `json:"attempt" api:"required minimum=1 maximum=32767"`
	// How long the service has from now on, in ms.
	Timeout *int64 `json:"timeout" api:"required minimum=1000 maximum=86400000"`
}

func (h *jobHandlers) readExtend(w http.ResponseWriter, r *http.Request) (attempt int, timeout time.Duration, err error) {
	var sent sentExtension
	if err := h.ReadJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return 0, 0, err
	}
	if attempt, err = readAttempt(sent.Attempt); err != nil {
		return 0, 0, err
	}
	shortest, longest := jobs.MinTimeout.Milliseconds(), jobs.MaxTimeout.Milliseconds()
	switch {
	case sent.Timeout == nil:
		return 0, 0, missing("/timeout", "for how long from now on, in ms")
	case *sent.Timeout < shortest || *sent.Timeout > longest:
		return 0, 0, invalidParameter("/timeout", "must be a time in ms, %d to %d", shortest, longest)
	}
	return attempt, time.Duration(*sent.Timeout) * time.Millisecond, nil
}

// explained is the error of a request for a job of a type: [jobs.ErrOtherType] in place of
// [jobs.ErrUnknownJob] if there is the job, but of another type of the same partition.
func (h *jobHandlers) explained(r *http.Request, id jobs.ID, err error) error {
	name := nameParam(r)
	if name == "" || !errors.Is(err, jobs.ErrUnknownJob) {
		return err
	}
	if _, failure := h.stores.Of(name).Job(r.Context(), "", id); failure == nil {
		return jobs.ErrOtherType
	}
	return err
}
