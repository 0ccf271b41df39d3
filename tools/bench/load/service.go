package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// doneJSON is a job done, as a service answers it.
const doneJSON = `{"status":"succeeded"}`

// LaterSuffix ends the names of types whose jobs a service of [ServeService] first accepts, and
// then reports on. It responds to other jobs that they are done.
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
	base, err := url.Parse(bus)
	if err != nil {
		return err
	}
	s := &service{follower: f, ctx: ctx, bus: base, token: token}
	return serve(ctx, &http.Server{Addr: address, Handler: s}, &http.Server{Addr: control, Handler: controls(f)})
}

// service does jobs.
type service struct {
	follower *follower
	ctx      context.Context // until when it serves
	bus      *url.URL
	token    string

	mu   sync.Mutex
	idle []*connection // to the bus
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
	return s.post(postRequest(s.bus, path, s.token, report))
}

// post sends a request to the bus on an idle connection. One that the bus has closed
// meanwhile is replaced: to report again changes nothing.
func (s *service) post(request []byte) error {
	conn, isNew, err := s.connection()
	if err != nil {
		return err
	}
	if err := conn.post(request); err != nil {
		_ = conn.Close()
		if isNew {
			return err
		}
		return s.post(request)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, conn)
	return nil
}

func (s *service) connection() (conn *connection, isNew bool, err error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		conn = s.idle[n-1]
		s.idle = s.idle[:n-1]
	}
	s.mu.Unlock()
	if conn != nil {
		return conn, false, nil
	}
	conn, err = dial(s.ctx, s.bus, false)
	return conn, true, err
}
