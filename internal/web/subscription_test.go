package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
)

func TestUnsubscribe(t *testing.T) {
	a := newSubscriberAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/other", `{"type":"noop","url":"https://x.example/"}`)
	assert.Equal(t, 404, a.Problem(bob, "DELETE", "/subscriber", "").Status)
	a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/"}`)
	assert.Equal(t, 404, a.Problem(bob, "DELETE", "/subscriber/topics/nowhere", "").Status)
	assert.Equal(t, 404, a.Problem(bob, "DELETE", "/subscriber/topics/other", "").Status)
	assert.Equal(t, 404, a.Problem(bob, "DELETE", "/subscriber/topics/Bad", "").Status)
	a.RequireDone(bob, "DELETE", "/subscriber/topics/widgets", "")
	a.RequireDone(bob, "DELETE", "/subscriber", "")
}

func TestACallbackThatIsDeniedIsRefused(t *testing.T) {
	deny, err := bus.ParseDenyList("loopback,link-local,10.0.0.0/8")
	require.NoError(t, err)
	a := newSubscriberAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.Subscriber.Deny = deny })
	for host, status := range map[string]int{
		"127.0.0.1": 400, "[::1]:8443": 400, "localhost": 400, "169.254.169.254": 400, "[::ffff:10.1.2.3]": 400, "[64:ff9b::a01:203]": 400,
		"192.168.0.1": 204, "internal.example": 204,
	} {
		got := a.Do(bob, "POST", "/subscription", `{"topics":["a"],"callback":"https://`+host+`/x"}`)
		assert.Equal(t, status, got.Status, "%s: %s", host, got.Body)
	}
}
