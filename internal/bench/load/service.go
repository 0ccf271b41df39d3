package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// doneJSON is a job done, as a service answers it.
const doneJSON = `{"status":"succeeded"}`

// LaterSuffix ends the names of the types whose jobs a service of [ServeService] accepts at first,
// and then reports on. It answers the others that they are done.
const LaterSuffix = ".later"

// JobsPath begins the paths at which services get jobs, and at which the bus has them.
const JobsPath = "/v1/jobs/"

// JobData is the data of a job by which a service follows it: the n-th of a run.
func JobData(n int64, due time.Time) json.RawMessage {
	data := []byte(`{"url":"` + urlStart + urlMarks + `","data":{"stock":3}}`)
	stamp(allMarks(data), 0, n, due)
	return data
}

// jobJSON is a job as a worker sends it.
const jobJSON = `{"data":{"url":"` + urlStart + urlMarks + `","data":{"stock":3}},"attempts":1,` +
	`"id":"job_282227eb-3c76-4ef7-af7e-25dff933077f","attempt":1}`

// ServeService serves plain HTTP on an address, until the context is done: it does every job at
// once. It follows the jobs that are done, by their type's path. [Control] asks it on the control
// address. Where it reports later, it does so to a bus, with the token of a client.
func ServeService(ctx context.Context, address, control, bus, token string) error {
	f := &follower{}
	f.begin("")
	s := &service{f, bus, token, &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	return serve(ctx, &http.Server{Addr: address, Handler: s}, &http.Server{Addr: control, Handler: controls(f)})
}

// service does jobs.
type service struct {
	follower   *follower
	bus, token string
	client     *http.Client
}

// ServeHTTP takes a job. It is followed once it is done: answered so, or reported.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDelivery))
	if err != nil {
		http.Error(w, "the body is incomplete", http.StatusBadRequest)
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, JobsPath), "/")
	if strings.HasSuffix(name, LaterSuffix) {
		w.WriteHeader(http.StatusAccepted)
		go func() { // it ends within the time-out of its client
			if s.report(r.URL.Path, body) == nil {
				s.follower.deliver(JobsPath+name, body)
			}
		}()
		return
	}
	s.follower.deliver(JobsPath+name, body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, doneJSON)
}

// report tells the bus that a job is done.
func (s *service) report(path string, body []byte) error {
	var job struct{ Attempt int }
	if err := json.Unmarshal(body, &job); err != nil {
		return err
	}
	report := fmt.Appendf(nil, `{"status":"succeeded","attempt":%d}`, job.Attempt)
	req, err := http.NewRequest(http.MethodPost, s.bus+path, bytes.NewReader(report))
	if err != nil {
		return err
	}
	req.SetBasicAuth(s.token, "")
	req.Header.Set("Content-Type", "application/json")
	return do(s.client, req)
}
