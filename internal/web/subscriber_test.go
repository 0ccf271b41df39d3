package web_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// subscriberAPI is an API under test.
type subscriberAPI struct{ *webtest.API }

func newSubscriberAPI(t *testing.T, redis *rdbtest.Server, adjust ...func(*web.Config)) subscriberAPI {
	t.Helper()
	return subscriberAPI{webtest.New(t, redis, adjust...)}
}

// TestSubscriberRoutes sends requests of a client to its subscriber's paths, and of root to the
// paths that name the client.
func TestSubscriberRoutes(t *testing.T) {
	routes := []struct {
		method, below, body string
		client, root        int // the statuses of its request, and of root's that follows it
	}{
		{"GET", "", "", 200, 200},
		{"PATCH", "", `{"max":7}`, 204, 204},
		{"POST", "/pause", "", 204, 204},
		{"POST", "/resume", "", 204, 204},
		{"POST", "/retry", "", 204, 204},
		{"POST", "/test", "", 202, 409},
		{"GET", "/attempts", "", 200, 200},
		{"GET", "/batches", "", 200, 200},
		{"GET", "/batches/x", "", 404, 404},
		{"DELETE", "/batches/x", "", 404, 404},
		{"GET", "/secrets", "", 200, 200},
		{"POST", "/secrets", "", 201, 201},
		{"DELETE", "/secrets/x", "", 404, 404},
		{"GET", "/replays", "", 200, 200},
		{"POST", "/replays", `{"topic":"widgets","from":1}`, 409, 409},
		{"DELETE", "/replays/x", "", 404, 404},
		{"GET", "/dead_letters", "", 200, 200},
		{"GET", "/dead_letters/count", "", 200, 200},
		{"GET", "/dead_letters/x", "", 404, 404},
		{"DELETE", "/dead_letters/x", "", 404, 404},
		{"POST", "/dead_letters/x/redeliver", "", 404, 404},
		{"POST", "/dead_letters/redeliver", `{"all":true}`, 200, 200},
		{"POST", "/dead_letters/discard", `{"all":true}`, 200, 200},
	}
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		for _, r := range routes {
			status := func(who, path string) int { return a.Do(who, r.method, path+r.below, r.body).Status }
			assert.Equal(t, r.client, status(alice, "/subscriber"), "%s %s", r.method, r.below)
			assert.Equal(t, r.root, status(rootKey, "/subscribers/alice--1"), "%s %s as root", r.method, r.below)
			assert.Equal(t, r.root, status(rootKey, "/subscribers/alice"), "%s %s as root, by name", r.method, r.below)
			assert.Equal(t, 403, status(rootKey, "/subscriber"), r.below)
			assert.Equal(t, 403, status(alice, "/subscribers/alice--1"), r.below)
			for _, path := range []string{"/subscriber", "/subscribers/alice--1"} {
				assert.Equal(t, 401, status("", path), r.below)
				assert.Equal(t, 401, status("nobody--9", path), r.below)
			}
			assert.Equal(t, 404, status(bob, "/subscriber"), "bob is not subscribed: %s", r.below)
			assert.Equal(t, 404, status(rootKey, "/subscribers/bob--2"), "bob is not subscribed: %s", r.below)
			assert.Equal(t, 404, status(rootKey, "/subscribers/nobody--9"), r.below)
			assert.Equal(t, 400, a.Problem(alice, r.method, "/subscriber"+r.below+"?colour=red", r.body).Status, r.below)
		}
		for _, path := range []string{"", "/topics/widgets"} {
			assert.Contains(t, a.Problem(rootKey, "DELETE", "/subscribers/nobody--9"+path, "").Detail, "no such token")
			assert.Contains(t, a.Problem(rootKey, "DELETE", "/subscribers/bob--2"+path, "").Detail, "no such subscription")
		}
		assert.Contains(t, a.Problem(rootKey, "GET", "/subscribers/nobody--9", "").Detail, "no such token")
		assert.Contains(t, a.Problem(bob, "GET", "/subscriber", "").Detail, "no such subscription")
		assert.NotContains(t, a.Log.String(), alice)
		assert.NotContains(t, a.Log.String(), bob)
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestABodyThatSaysNothingIsTaken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.bury(redis, 1)
		letter := "/dead_letters/" + letterIDs(1)[0] + "/redeliver"
		for _, below := range []string{"/resume", "/retry", "/test", letter} {
			for _, body := range []string{`{"until":1}`, `[]`, `null`, `0`, `{}{}`, "x"} {
				refused := a.Problem(alice, "POST", "/subscriber"+below, body)
				assert.Equal(t, 400, refused.Status, "%s %s", below, body)
				assert.Contains(t, refused.Detail, "send none")
			}
		}
		a.RequireDone(alice, "POST", "/subscriber/resume", "{}")
		a.RequireDone(alice, "POST", "/subscriber/resume", " \n")
		a.RequireDone(alice, "POST", "/subscriber"+letter, "{ }")
		assert.Equal(t, 202, a.Do(alice, "POST", "/subscriber/test", "{}").Status)
	})
}
