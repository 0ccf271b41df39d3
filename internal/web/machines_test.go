package web_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// machinesAPI is an API under test whose clock stands, with what workers would do, and a service
// for the webhooks and feeds.
type machinesAPI struct {
	*webtest.API
	workers *machinestest.Fixture
	service *machinestest.Service
}

func newMachinesAPI(t *testing.T, redis *rdbtest.Server) *machinesAPI {
	t.Helper()
	var client *outbound.Client
	served := webtest.New(t, redis, func(c *web.Config) { client = c.Machines.Client })
	a := &machinesAPI{API: served, service: machinestest.NewService(t), workers: machinestest.Beside(t, served.Partitions(), client)}
	a.Clock = func() time.Time { return a.workers.Now }
	basic := a.Authorize
	a.Authorize = func(r *http.Request, who string) {
		basic(r, who)
		if r.Method == http.MethodPut {
			r.Header.Set("Content-Type", "application/yaml")
		}
	}
	return a
}

// require sends a request of a client, and requires a status. It returns the body.
func (a *machinesAPI) require(status int, method, path, body string) string {
	a.T.Helper()
	return a.requireOf(alice, status, method, path, body)
}

func (a *machinesAPI) requireOf(who string, status int, method, path, body string) string {
	a.T.Helper()
	got := a.Do(who, method, path, body)
	require.Equal(a.T, status, got.Status, "%s %s %s: %s", method, path, body, got.Body)
	return got.Body
}

// apply replaces the definitions.
func (a *machinesAPI) apply(yaml string) {
	a.T.Helper()
	a.requireOf(rootKey, 200, "PUT", "/state-machines", yaml)
}

// refuse requires that a request of a client is refused with a status and an id.
func (a *machinesAPI) refuse(status int, id, method, path, body string) webtest.Problem {
	a.T.Helper()
	got := a.Problem(alice, method, path, body)
	assert.Equal(a.T, status, got.Status, "%s %s %s: %s", method, path, body, got.Detail)
	assert.Equal(a.T, id, got.ID, "%s %s %s: %s", method, path, body, got.Detail)
	return got
}

// label is a label as a response shows it.
type label struct {
	Metadata   map[string]any
	State      string
	EnteredAt  int64 `json:"entered_at"`
	WaitingFor *struct {
		explanation
		Triggers []trigger
	} `json:"waiting_for"`
	Action *struct {
		Attempts   int
		LastStatus int    `json:"last_status"`
		LastError  string `json:"last_error"`
		NextTryAt  int64  `json:"next_try_at"`
	}
	Errored *struct {
		At     int64
		Reason string
	}
	Route []string
}

type explanation struct {
	Condition string
	Value     *bool
	Unknown   bool
	Error     string
	Parts     []struct {
		Text    string
		Value   any
		Unknown bool
		Error   string
	}
}

type trigger struct {
	Type, Path, Topic string
	At                int64
}

// show looks a label up.
func (a *machinesAPI) show(path string) label {
	a.T.Helper()
	return decode[label](a, a.require(200, "GET", path, ""))
}

func decode[T any](a *machinesAPI, body string) (value T) {
	a.T.Helper()
	require.NoError(a.T, json.Unmarshal([]byte(body), &value), body)
	return value
}

// journey has two gates and an action between them.
func (a *machinesAPI) journey() string {
	return `
state_machines:
  journey:
    states:
      - gate: start
        exit_condition: metadata.go = true
        triggers: [{metadata: go}, {event: entry}]
        next: act
      - action: act
        webhook: ` + a.service.URL + `/act/<label>
        attempts: 2
        next: end
      - gate: end
        exit_condition: false
`
}

const labels = "/state-machines/journey/labels/"
