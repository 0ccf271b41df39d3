// Command services is an example service: it prints each job, and reports that it is done.
package main

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

// work does a job. Doing it twice must be harmless: if this process ends before it has reported,
// the job comes again.
func work(name string, data json.RawMessage) error {
	fmt.Println(name, string(data))
	return nil
}

// service does jobs. How many at once is for the concurrency of their types to say.
type service struct {
	mu sync.Mutex
	// attempts has the path of each job in hand, and the attempt as which it came last.
	attempts map[string]int
}

// ServeHTTP takes a job: it answers before the work is done.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	expected := os.Getenv("DOWNSTREAM_WORKER_AUTH")
	if user != "jobs" || subtle.ConstantTimeCompare([]byte(password), []byte(expected)) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var job struct {
		Data    json.RawMessage
		Attempt int
	}
	if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	_, inHand := s.attempts[r.URL.Path]
	s.attempts[r.URL.Path] = job.Attempt
	s.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	if !inHand { // else it came again: the answer was lost, or the deadline has passed
		go s.do(r.PathValue("name"), r.URL.Path, job.Data)
	}
}

// do does a job, and repeats the report until the bus has taken or refused it.
func (s *service) do(name, path string, data json.RawMessage) {
	status := "succeeded"
	if err := work(name, data); err != nil {
		log.Print(path, ": ", err)
		status = "failed"
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Minute) {
		s.mu.Lock()
		attempt := s.attempts[path]
		s.mu.Unlock()
		err := report(path, status, attempt)
		if err == nil && s.forget(path, attempt) {
			return
		}
		if err != nil {
			log.Print(path, ": ", err)
		}
		time.Sleep(pause)
	}
}

// forget lets go of a job, unless it has come again as another attempt.
func (s *service) forget(path string, attempt int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[path] != attempt {
		return false
	}
	delete(s.attempts, path)
	return true
}

var client = &http.Client{Timeout: 10 * time.Second}

// report tells the bus how an attempt ended. The error is nil if it has taken or refused that.
func report(path, status string, attempt int) error {
	body, err := json.Marshal(map[string]any{"status": status, "attempt": attempt})
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, os.Getenv("BUS")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.SetBasicAuth(os.Getenv("TOKEN"), "")
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	response.Body.Close()
	switch {
	case response.StatusCode >= 500:
		return fmt.Errorf("the bus answers %s", response.Status)
	case response.StatusCode >= 400: // it does not wait for this attempt any more
		log.Print(path, ": report refused: ", response.Status)
	}
	return nil
}

func main() {
	for _, variable := range []string{"PORT", "BUS", "TOKEN", "DOWNSTREAM_WORKER_AUTH"} {
		if os.Getenv(variable) == "" {
			log.Fatal(variable, " is not set")
		}
	}
	http.Handle("POST /v1/jobs/{name}/{id}", &service{attempts: map[string]int{}})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
