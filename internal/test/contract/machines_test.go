package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestALabelFromItsFirstStateToItsLast has a client make a label and change its metadata, and asks
// at each step where it is and why.
func TestALabelFromItsFirstStateToItsLast(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := machinestest.NewService(t)
		b := bustest.Start(t, server)
		app := b.AddClient("app")
		definitions := strings.ReplaceAll(bustest.WelcomeMachine, "URL", service.URL)
		b.Call(app, "PUT", "/state-machines", definitions, http.StatusForbidden)
		b.Call(bustest.RootKey, "PUT", "/state-machines", definitions, http.StatusOK)
		label := func(method, path, body string, status int) (v struct {
			State      string
			Metadata   map[string]any
			WaitingFor struct {
				Condition string
				Value     *bool
			} `json:"waiting_for"`
			Route []string
		}) {
			t.Helper()
			text := b.Call(app, method, "/state-machines/welcome/labels/"+path, body, status)
			require.NoError(t, json.Unmarshal([]byte(text), &v), text)
			return v
		}

		made := label("POST", "ann%40x", `{"metadata":{"plan":"free"}}`, http.StatusCreated)
		assert.Equal(t, "signed_up", made.State)
		waiting := label("GET", "ann%40x", "", http.StatusOK)
		assert.Equal(t, "metadata.confirmed", waiting.WaitingFor.Condition)
		assert.Equal(t, []string{"send_mail", "done"}, waiting.Route)
		require.NotNil(t, waiting.WaitingFor.Value)
		assert.False(t, *waiting.WaitingFor.Value)

		moved := label("PATCH", "ann%40x?wait=10000", `{"metadata":{"confirmed":true}}`, http.StatusOK)
		assert.Equal(t, "done", moved.State)
		assert.Equal(t, map[string]any{"plan": "free", "confirmed": true}, moved.Metadata)
		calls := service.Calls()
		require.Len(t, calls, 1)
		assert.Equal(t, "/welcome/ann%40x", calls[0].Path)
		assert.Equal(t, "ann@x", calls[0].Body.Label)
		assert.NotEmpty(t, calls[0].Header.Get("X-Idempotency-Token"))

		// A worker that stops finishes its work; another does the work that has come meanwhile.
		b.StopWorker()
		label("POST", "ben?wait=0", `{"metadata":{}}`, http.StatusCreated)
		assert.Equal(t, "signed_up", label("PATCH", "ben?wait=0", `{"metadata":{"confirmed":1}}`, http.StatusOK).State)
		b.StartWorker()
		assert.Equal(t, "done", label("PATCH", "ben?wait=10000", `{"metadata":{"confirmed":1}}`, http.StatusOK).State)
		assert.Len(t, service.Calls(), 1)
		b.Call(app, "DELETE", "/state-machines/welcome/labels/ben", "", http.StatusNoContent)
		b.Call(app, "GET", "/state-machines/welcome/labels/ben", "", http.StatusGone)
		list := b.Call(app, "GET", "/state-machines/welcome/labels?state=done", "", http.StatusOK)
		assert.Contains(t, list, "ann@x")
		assert.NotContains(t, list, "ben")
	})
}

const shop = `
state_machines:
  orders:
    states:
      - gate: new
        exit_condition: metadata.paid
        triggers: [{topic: orders, label: {url: "https://shop.example/<label>"}, create: true}]
        next: ship
      - {action: ship, webhook: URL/ship/<label>, next: shipped}
      - {gate: shipped, exit_condition: false}
    publish: {topic: moves, url: "https://shop.example/<label>"}
  audit:
    states:
      - gate: open
        exit_condition: metadata.to = "shipped"
        triggers: [{topic: moves, label: {data: label}, create: true}]
        next: closed
      - {gate: closed, exit_condition: false}
`

// TestEventsMoveLabelsAndMovesAreEvents has an event move a label, and the events of its moves move
// a label of another machine.
func TestEventsMoveLabelsAndMovesAreEvents(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		service := machinestest.NewService(t)
		b := bustest.Start(t, server)
		app := b.AddClient("app")
		b.Call(bustest.RootKey, "PUT", "/state-machines", strings.ReplaceAll(shop, "URL", service.URL), http.StatusOK)
		b.Call(app, "POST", "/topics/orders", `{"type":"create","url":"https://shop.example/7","data":{"total":9}}`, http.StatusOK)
		b.Call(app, "POST", "/topics/orders", `{"type":"update","url":"https://shop.example/7","data":{"paid":true}}`, http.StatusOK)
		require.Eventually(t, func() bool {
			status, text, err := bustest.Send(b.Client, b.API, app, "GET", "/state-machines/audit/labels/7", "")
			return err == nil && status == http.StatusOK && strings.Contains(text, `"state":"closed"`)
		}, bustest.WaitTimeout, 10*time.Millisecond)
		order := b.Call(app, "GET", "/state-machines/orders/labels/7", "", http.StatusOK)
		assert.Contains(t, order, `"metadata":{"paid":true,"total":9}`)
		assert.Contains(t, order, `"state":"shipped"`)
		assert.Len(t, service.Calls(), 1)
		b.Drain()
		b.RequireNothingLeft()
	})
}
