package client_test

import (
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/jobs"
	"routemaster/client/machines"
	"routemaster/client/subscriber"
	"routemaster/client/topics"
	"routemaster/client/workers"
)

// notCalled are the endpoints that Go programs do without: probes, the description itself, requests
// of the console and rtm top, and other names of endpoints that programs call.
var notCalled = []string{
	"GET /", "GET /health", "GET /health/ping", "GET /health/ping.json", "GET /health/ready", "GET /pulse/scaling", "GET /openapi.json", "GET /whoami", "POST /console_logins",
	"GET /overview", "GET /overview/series", "GET /activity",
	"GET /subscribers", "DELETE /subscription", "DELETE /subscription/topics/{topic}", "DELETE /topic/{topic}",
	"POST /v1/jobs",
}

// TestEveryEndpointIsCalled calls everything, and compares the requests with the bus's
// documentation.
func TestEveryEndpointIsCalled(t *testing.T) {
	names := strings.NewReplacer("/shop--1", "/{token}", "/widgets", "/{topic}", "/some", "/{id}", "/ship", "/{name}",
		"/welcome", "/{machine}", "/user", "/{label}", "/main", "/{queue}")
	called := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called[r.Method+" "+names.Replace(r.URL.Path)] = true
		answer := "null"
		switch {
		case strings.HasSuffix(r.URL.Path, "/tail"):
			w.Header().Set("Content-Type", "text/event-stream")
		case strings.HasSuffix(r.URL.Path, "/rotate"):
			answer = `{"done":true}` // or it goes on
		case strings.HasSuffix(r.URL.Path, "/dead_letters"):
			answer = `[{"died_at":1}]` // or nothing is moved
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "token")
	require.NoError(t, err)
	defer c.CloseIdleConnections()
	callBus(t, c)
	callJobs(t, jobs.New(c))
	callMachines(t, c)
	callSubscriber(t, subscriber.New(c))
	callSubscriber(t, subscriber.Of(c, "shop--1"))

	assert.ElementsMatch(t, slices.Sorted(maps.Keys(called)), slices.DeleteFunc(documentedEndpoints(t), func(endpoint string) bool {
		return slices.Contains(notCalled, endpoint)
	}))
}

// documentedEndpoints are the endpoints of the bus's description.
func documentedEndpoints(t *testing.T) (endpoints []string) {
	t.Helper()
	text, err := os.ReadFile("../../web/openapi.json")
	require.NoError(t, err)
	var api struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(text, &api))
	for path, item := range api.Paths {
		for method := range item {
			if method != "parameters" {
				endpoints = append(endpoints, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return endpoints
}

// callMachines calls everything about state machines.
func callMachines(t *testing.T, c *client.Client) {
	ctx, m := t.Context(), machines.Of(c, "welcome")
	_, _, err := machines.Names(ctx, c)
	requireCalled(t, err, errorOf(machines.Apply(ctx, c, []byte("{}"))), errorOf(m.Show(ctx)), drain(m.Labels(ctx, machines.Filter{}, "")),
		errorOf(m.Create(ctx, "user", nil)), errorOf(m.Merge(ctx, "user", nil)), errorOf(m.Label(ctx, "user")), m.Delete(ctx, "user"),
		errorOf(m.Retry(ctx, "user")), errorOf(m.Evaluate(ctx, "user")), errorOf(m.History(ctx, "user")))
}

// callBus calls everything that is not about one subscriber.
func callBus(t *testing.T, c *client.Client) {
	ctx := t.Context()
	metrics, err := c.Metrics(ctx)
	require.NoError(t, err)
	require.NoError(t, metrics.Close())
	h := history.Of(c, "widgets")
	for _, err := range c.Tail(ctx, "widgets") {
		require.NoError(t, err)
		break
	}
	requireCalled(t, c.Pulse(ctx), h.Put(ctx, history.Limits{}), h.Delete(ctx), errorOf(h.Get(ctx)), drain(h.Events(ctx, history.Start{})),
		errorOf(c.Topics(ctx)), errorOf(topics.Get(ctx, c, "widgets")), errorOf(workers.Get(ctx, c)), errorOf(workers.Next(ctx, c, "main", 1)), c.DeleteTopic(ctx, "widgets"), c.Publish(ctx, client.Event{Topic: "widgets", Type: client.Noop, URL: "https://x.example/"}),
		errorOf(c.Tokens(ctx)), errorOf(c.AddToken(ctx, "shop", "shop--1")), c.DeleteToken(ctx, "shop--1"), errorOf(c.RotateToken(ctx, "shop--1", false, nil)),
		errorOf(c.Subscriptions(ctx)), c.Subscribe(ctx, client.Subscription{}), c.Unsubscribe(ctx, "widgets"), c.UnsubscribeAll(ctx))
}

// callJobs calls everything that is about jobs. Where a type could stand, the id of a job may, too.
func callJobs(t *testing.T, j *jobs.Jobs) {
	ctx := t.Context()
	requireCalled(t, errorOf(j.AddType(ctx, jobs.Type{})), errorOf(j.Type(ctx, "ship")), errorOf(j.Types(ctx)), errorOf(j.ChangeType(ctx, "ship", nil)),
		j.DeleteType(ctx, "ship"), errorOf(j.Enqueue(ctx, "ship", jobs.NewJob{ID: "some"})), errorOf(j.EnqueueAll(ctx, "ship", nil)),
		errorOf(j.Job(ctx, "ship")), errorOf(j.JobOf(ctx, "ship", "some")), errorOf(j.Attempts(ctx, "ship", "some")), errorOf(j.ReplayOf(ctx, "ship", "some")), drain(j.Open(ctx, jobs.Filter{})), drain(j.Archived(ctx, jobs.Filter{})), errorOf(j.Cancel(ctx, "ship", "some")),
		errorOf(j.Replay(ctx, "some")), errorOf(j.Fetch(ctx, "ship", 1, 0)), errorOf(j.Extend(ctx, "ship", "some", 1, time.Minute)),
		j.Report(ctx, "ship", "some", jobs.Report{}))
}

// callSubscriber calls everything that is about one subscriber.
func callSubscriber(t *testing.T, s *subscriber.Subscriber) {
	ctx := t.Context()
	all := subscriber.LetterFilter{}
	requireCalled(t, s.Subscribe(ctx, client.Subscription{}), s.Unsubscribe(ctx, "widgets"), s.Delete(ctx), errorOf(s.Info(ctx)), s.Patch(ctx, nil),
		s.Pause(ctx, time.Time{}), s.Resume(ctx), s.Retry(ctx), errorOf(s.Test(ctx)),
		drain(s.Attempts(ctx, subscriber.AttemptFilter{})), errorOf(s.LastAttempts(ctx, subscriber.AttemptFilter{}, 1)), drain(s.Batches(ctx)), errorOf(s.OldestBatches(ctx, 1)), errorOf(s.Batch(ctx, "some", 0)), s.RemoveBatch(ctx, "some"),
		drain(s.Letters(ctx, all)), errorOf(s.LetterPage(ctx, all, "", 1)), errorOf(s.CountLetters(ctx, all)), errorOf(s.Letter(ctx, "some", 0)), drain(s.RedeliverLetters(ctx, all)), drain(s.DiscardLetters(ctx, all)),
		s.RedeliverLetter(ctx, "some"), s.DiscardLetter(ctx, "some"),
		errorOf(s.StartReplay(ctx, "widgets", subscriber.ReplayRange{From: 1})), errorOf(s.Replays(ctx)), s.CancelReplay(ctx, "some"),
		errorOf(s.AddSecret(ctx, subscriber.NewSecret{})), errorOf(s.Secrets(ctx)), s.DeleteSecret(ctx, "some"))
}

func requireCalled(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// drain reads all of a list.
func drain[T any](list iter.Seq2[T, error]) (last error) {
	for _, err := range list {
		last = err
	}
	return last
}
