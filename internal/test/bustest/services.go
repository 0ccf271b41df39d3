package bustest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Job has the fields of a job that tests read.
type Job struct {
	ID, Name, Status string
	Attempts         int
	Data             json.RawMessage
	Deadline         *time.Time
}

// NewJobService starts a service that passes on each job's path and body, and responds that it is
// at work. It ends with the test.
func NewJobService(t testing.TB) (url string, jobs chan [2]string) {
	jobs = make(chan [2]string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		user, password, _ := r.BasicAuth()
		assert.Equal(t, []string{"jobs", "s3cret"}, []string{user, password})
		jobs <- [2]string{r.URL.Path, string(body)}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	return server.URL, jobs
}

// WelcomeMachine is the definition of a state machine with two gates, and an action whose webhook
// is below URL.
const WelcomeMachine = `
state_machines:
  welcome:
    states:
      - gate: signed_up
        triggers: [{metadata: confirmed}]
        exit_condition: metadata.confirmed
        next: send_mail
      - action: send_mail
        webhook: URL/welcome/<label>
        next: done
      - {gate: done, exit_condition: false}
`
