package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/fence"
)

// TestABusThatIsClosed because it moves says so to those who want to change something, and to load
// balancers; it can be read, and knows what it has accepted.
func TestABusThatIsClosed(t *testing.T) {
	const (
		waiting = "state_machines:\n  order:\n    states:\n      - gate: placed\n        exit_condition: false\n"
		hearing = "        triggers: [{topic: widgets, label: {url: \"https://x.example/<label>\"}, create: true}]\n"
	)
	eachParted(t, func(t *testing.T, a parted) {
		shop, event := a.client(1), `{"type":"update","url":"https://x.example/1"}`
		require.Equal(t, 204, a.Do(shop, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/"}`).Status)
		require.Equal(t, 200, a.Do(shop, "POST", "/topics/widgets", event).Status)
		for _, p := range a.bus.All {
			require.NoError(t, p.HSet(t.Context(), p.Namespace()+"plans", fence.Field, fence.Closed+"/old/one").Err())
		}
		for _, request := range [][4]string{
			{shop, "POST", "/topics/widgets", event},
			{shop, "POST", "/topics/gadgets", event},
			{shop, "DELETE", "/topics/widgets"},
			{shop, "PUT", "/topics/widgets/history", `{"events":10}`},
			{shop, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://x.example/"}`},
			{shop, "PATCH", "/subscriber", `{"max":5}`},
			{shop, "POST", "/subscriber/pause", `{}`},
			{shop, "DELETE", "/subscriber"},
			{rootKey, "POST", "/api_tokens", `{"name":"more","token":"more--1"}`},
			{rootKey, "DELETE", "/api_tokens/" + shop},
			{shop, "POST", "/v2/job-types", `{"name":"resize","url":"https://x.example/","delivery_strategy":"at_least_once","attempts":3,"concurrency":1}`},
			{rootKey, "PUT", "/state-machines", waiting},
			{rootKey, "PUT", "/state-machines", waiting + hearing},
		} {
			answer := a.Do(request[0], request[1], request[2], request[3])
			assert.Equal(t, 503, answer.Status, "%v: %s", request, answer.Body)
			assert.Contains(t, answer.Body, "the bus moves to another Redis")
			assert.NotEmpty(t, answer.Header.Get("Retry-After"))
		}
		assert.Equal(t, 503, a.Do("", "GET", "/health/ready", "").Status)
		assert.Equal(t, 200, a.Do("", "GET", "/health", "").Status)
		assert.Equal(t, 200, a.Do(shop, "GET", "/topics", "").Status)
		assert.Equal(t, 200, a.Do(shop, "GET", "/subscriber", "").Status)
	})
}
