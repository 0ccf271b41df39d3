package machinestest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Call is a request that a [Service] got.
type Call struct {
	Method, Path string
	Header       http.Header
	// Text is the body of a webhook, Body the decoded one.
	Text string
	Body struct {
		Label    string         `json:"label"`
		Metadata map[string]any `json:"metadata"`
	}
}

// Service has the webhooks and feeds of a test. It answers 200 and {} unless it is told otherwise.
type Service struct {
	URL string

	mu     sync.Mutex
	answer http.HandlerFunc
	calls  []Call
}

// NewService starts a service.
func NewService(t testing.TB) *Service {
	s := &Service{answer: With(http.StatusOK, "{}")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := Call{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			call.Text = string(body)
			require.NoError(t, json.Unmarshal(body, &call.Body))
		}
		s.mu.Lock()
		s.calls = append(s.calls, call)
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Answer has the service answer otherwise from now on.
func (s *Service) Answer(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// With answers with a status and a body.
func With(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Calls returns the requests since the last time.
func (s *Service) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}
