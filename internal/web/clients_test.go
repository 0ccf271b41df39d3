package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// wireClient is an existing client as the server sees it, from descriptions of its requests.
type wireClient struct {
	// name is also its token and its topic.
	name string
	// password goes with the token as the user name.
	password string
	header   map[string]string
	requests []wireRequest
	// published is how many events it publishes, stored is a part of how its subscriber is listed.
	published int
	stored    string
}

// wireRequest is a request with the only status that its client takes for success.
type wireRequest struct {
	method, path, body string
	status             int
}

var rubyHeader = map[string]string{"Content-Type": "application/json", "User-Agent": "Faraday v0.9.2", "Accept": "*/*"}

// wireClients are all clients. Each sends its topic in place of TOPIC.
var wireClients = []wireClient{
	{
		name: "ruby_one", password: "x", header: rubyHeader,
		requests: []wireRequest{
			{"GET", "/pulse", "", 204},
			{"POST", "/subscription", `{"topics":["TOPIC"],"callback":"https://app.example/events","uuid":"demo","timeout":60000,"max":500}`, 204},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1","timestamp":null}`, 200},
			{"POST", "/topics/TOPIC", `{"type":"update","url":"https://app.example/widgets/1","timestamp":1795302000000}`, 200},
			{"POST", "/topics/TOPIC", `{"type":"delete","url":"https://app.example/widgets/1","timestamp":1795302000000.0}`, 200},
			{"GET", "/topics", "", 200},
		},
		published: 3, stored: `"uuid":"demo","callback":"https://app.example/events","max_events":500,"timeout":60000`,
	},
	{
		name: "ruby_two", password: "x", header: rubyHeader,
		requests: []wireRequest{
			{"GET", "/pulse", "", 204},
			{"POST", "/subscription", `{"topics":["TOPIC","parcels"],"callback":"https://app.example/events"}`, 204},
			{"POST", "/topics/TOPIC", `{"type":"noop","url":"https://app.example/widgets/1","timestamp":null}`, 200},
			{"DELETE", "/subscriber/topics/parcels", "", 204},
			{"GET", "/topics", "", 200},
		},
		published: 1, stored: `"uuid":"","callback":"https://app.example/events","max_events":100,"timeout":500`,
	},
	{
		name: "ruby_three", password: "x", header: rubyHeader,
		requests: []wireRequest{
			{"GET", "/pulse", "", 204},
			// rtm sub add https://demo@app.example/events
			{"POST", "/subscription", `{"callback":"https://demo@app.example/events","topics":["TOPIC"],"uuid":"ruby_three"}`, 204},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1","timestamp":null}`, 200},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1","timestamp":null,"data":null}`, 200},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1","timestamp":null,"data":{"foo":"bar"}}`, 200},
			{"GET", "/topics", "", 200},
			{"GET", "/subscriptions", "", 200},
		},
		published: 3, stored: `"uuid":"ruby_three","callback":"https://app.example/events","max_events":100,"timeout":500`,
	},
	{
		name: "elixir", password: "x",
		header: map[string]string{"Content-Type": "application/json", "User-Agent": "routemaster-client-ex-v0.3.0"},
		requests: []wireRequest{
			{"POST", "/subscription", `{"uuid":"drain-token","topics":["TOPIC"],"timeout":null,"max":null,"callback":"https://app.example/events"}`, 204},
			{"POST", "/topics/TOPIC", `{"url":"https://app.example/widgets/1","type":"create","timestamp":1795302000000}`, 200},
			{"POST", "/topics/TOPIC", `{"url":"https://app.example/widgets/1","type":"update","timestamp":1795302000000,"data":{"foo":"bar"}}`, 200},
			{"GET", "/topics", "", 200},
			{"GET", "/subscribers", "", 200},
		},
		published: 2, stored: `"uuid":"drain-token","callback":"https://app.example/events","max_events":100,"timeout":500`,
	},
	{
		name: "go", header: map[string]string{"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"}, // and no Content-Type
		requests: []wireRequest{
			{"POST", "/subscription", `{"topics":["TOPIC"],"callback":"https://app.example/events","uuid":"demo","timeout":1000,"max":10}`, 204},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1"}`, 200},
			{"POST", "/topics/TOPIC", `{"type":"create","url":"https://app.example/widgets/1","timestamp":1795302000000,"data":{"foo":"bar"}}`, 200},
			{"GET", "/topics", "null", 200},
		},
		published: 2, stored: `"uuid":"demo","callback":"https://app.example/events","max_events":10,"timeout":1000`,
	},
}

// lastRequests are sent after the results of the others were checked. The Go client sends a body
// with them, and the path /topic in place of /topics.
var lastRequests = map[string][]wireRequest{
	"ruby_one":   {{"DELETE", "/subscriber", "", 204}, {"DELETE", "/topics/TOPIC", "", 204}},
	"ruby_two":   {{"DELETE", "/subscriber", "", 204}, {"DELETE", "/topics/TOPIC", "", 204}},
	"ruby_three": {{"DELETE", "/subscriber/topics/TOPIC", "", 204}, {"DELETE", "/subscriber", "", 204}, {"DELETE", "/topics/TOPIC", "", 204}},
	"elixir":     {{"DELETE", "/subscriber/topics/TOPIC", "", 204}, {"DELETE", "/subscriber", "", 204}, {"DELETE", "/topics/TOPIC", "", 204}},
	"go":         {{"DELETE", "/subscriber/topics/TOPIC", "null", 204}, {"DELETE", "/subscriber", "null", 204}, {"DELETE", "/topic/TOPIC", "null", 204}},
}

// replay sends a client's requests over a connection.
func (c *wireClient) replay(t *testing.T, url string, requests []wireRequest) {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	for _, q := range requests {
		text := strings.NewReplacer("TOPIC", c.name)
		r, err := http.NewRequestWithContext(t.Context(), q.method, url+text.Replace(q.path), strings.NewReader(text.Replace(q.body)))
		require.NoError(t, err)
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		r.SetBasicAuth(c.name, c.password)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, q.status, resp.StatusCode, "%s: %s %s %s: %s", c.name, q.method, q.path, q.body, body)
		if q.method == "GET" && q.status == 200 {
			assert.True(t, json.Valid(body), "%s: GET %s", c.name, q.path)
			continue
		}
		assert.Empty(t, body, "%s: %s %s", c.name, q.method, q.path)
		assert.LessOrEqual(t, resp.ContentLength, int64(0))
	}
}

func TestExistingClients(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		url := a.Run()
		for _, c := range wireClients {
			require.NoError(t, a.PutToken(t.Context(), bus.Token(c.name), bus.ClientName(c.name+"-name")))
		}
		for _, c := range wireClients {
			c.replay(t, url, c.requests)
			assert.Contains(t, a.Do(c.name, "GET", "/subscriptions", "").Body, c.stored, c.name)
			var topics []struct {
				Name   string
				Events int
			}
			require.NoError(t, json.Unmarshal([]byte(a.Do(c.name, "GET", "/topics", "").Body), &topics))
			assert.Contains(t, topics, struct {
				Name   string
				Events int
			}{c.name, c.published})
			c.replay(t, url, lastRequests[c.name])
		}
		// The operator, from the Ruby and the Go client's commands.
		for _, body := range []string{`{"name":"service","token":null}`, `{"name":"service"}`} {
			got := a.Do(rootKey, "POST", "/api_tokens", body)
			assert.Equal(t, 201, got.Status)
			assert.Regexp(t, `^\{"name":"service","token":"service--[0-9a-f]{32}"\}$`, got.Body)
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}
