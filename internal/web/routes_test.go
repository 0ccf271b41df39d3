package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

// requireAllTried requires a request of each operation of the API, but for those of a subscriber,
// which have tests of their own.
func requireAllTried(t *testing.T, requests []string) {
	t.Helper()
	var described struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal(web.OpenAPI(), &described))
	parameter := regexp.MustCompile(`\\{[a-z]+\\}`)
	for path, operations := range described.Paths {
		if strings.HasPrefix(path, "/subscriber") {
			continue
		}
		for method := range operations {
			asked := regexp.MustCompile("^" + strings.ToUpper(method) + " " + parameter.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
			assert.True(t, slices.ContainsFunc(requests, asked.MatchString), "%s %s has no row", strings.ToUpper(method), path)
		}
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	const event = `{"type":"noop","url":"https://x.example/"}`
	const jobType = `{"name":"echo","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"url":null}`
	const job = "job_00000000-0000-4000-8000-00000000000"
	const machine = `{"state_machines":{"m":{"states":[{"gate":"start","exit_condition":"metadata.go","next":"end"},{"gate":"end","exit_condition":false}]}}}`
	const subscription = `{"topics":["widgets"],"callback":"https://x.example/"}`
	routes := []struct {
		method, path, body         string
		anyone, client, root, junk int
		other                      int // another client; 0 if it does not ask
	}{
		{"GET", "/", "", 200, 200, 200, 200, 0},
		{"GET", "/health", "", 200, 200, 200, 200, 0},
		{"GET", "/health/ping", "", 200, 200, 200, 200, 0},
		{"GET", "/health/ping.json", "", 200, 200, 200, 200, 0},
		{"GET", "/health/ready", "", 200, 200, 200, 200, 0},
		{"GET", "/openapi.json", "", 200, 200, 200, 200, 0},
		{"GET", "/pulse", "", 401, 204, 204, 401, 0},
		{"GET", "/pulse/scaling", "", 401, 204, 204, 401, 0},
		{"GET", "/metrics", "", 401, 200, 200, 401, 0},
		{"GET", "/whoami", "", 401, 200, 200, 401, 0},
		{"POST", "/console_logins", "", 401, 404, 404, 401, 0}, // this bus has no console
		{"GET", "/activity", "", 401, 403, 200, 401, 0},
		{"GET", "/threads", "", 401, 403, 200, 401, 0},
		{"GET", "/queues/main", "", 401, 403, 200, 401, 0},
		{"GET", "/queues/none", "", 401, 403, 404, 401, 0},
		{"GET", "/api_tokens", "", 401, 403, 200, 401, 0},
		{"POST", "/api_tokens", `{"name":"x"}`, 401, 403, 201, 401, 0},
		{"DELETE", "/api_tokens/none", "", 401, 403, 204, 401, 0},
		{"POST", "/api_tokens/none/rotate", "", 401, 403, 404, 401, 0},
		{"GET", "/overview", "", 401, 200, 200, 401, 0},
		{"GET", "/overview/series", "", 401, 200, 200, 401, 0},
		{"GET", "/topics", "", 401, 200, 200, 401, 0},
		{"POST", "/topics/widgets", event, 401, 200, 403, 401, 0},
		{"GET", "/topics/widgets", "", 401, 200, 200, 401, 0},
		{"PUT", "/topics/widgets/history", `{"events":1}`, 401, 204, 204, 401, 0},
		{"GET", "/topics/widgets/history", "", 401, 200, 200, 401, 0},
		{"GET", "/topics/widgets/events", "", 401, 200, 200, 401, 0},
		{"GET", "/topics/unknown/tail", "", 401, 404, 404, 401, 0}, // one of a topic does not end
		{"DELETE", "/topics/widgets/history", "", 401, 204, 404, 401, 0},
		{"POST", "/subscription", subscription, 401, 204, 403, 401, 0},
		{"POST", "/subscriber", subscription, 401, 204, 403, 401, 0},
		{"GET", "/subscriptions", "", 401, 200, 200, 401, 0},
		{"GET", "/subscribers", "", 401, 200, 200, 401, 0},
		{"DELETE", "/subscription/topics/widgets", "", 401, 204, 403, 401, 0},
		{"DELETE", "/subscriber/topics/widgets", "", 401, 404, 403, 401, 0},
		{"DELETE", "/subscriber", "", 401, 204, 403, 401, 0},
		{"DELETE", "/subscription", "", 401, 404, 403, 401, 0},
		{"DELETE", "/topics/widgets", "", 401, 204, 404, 401, 0},
		{"DELETE", "/topic/widgets", "", 401, 404, 404, 401, 0},
		// Alice makes the type, Bob is another client.
		{"POST", "/v1/jobs", jobType, 401, 201, 400, 401, 0},
		{"POST", "/v2/job-types", jobType, 401, 400, 400, 401, 400},
		{"GET", "/v1/jobs/echo", "", 401, 200, 200, 401, 200},
		{"GET", "/v2/job-types", "", 401, 200, 200, 401, 200},
		{"GET", "/v2/job-types/echo", "", 401, 200, 200, 401, 200},
		{"PATCH", "/v2/job-types/echo", `{"paused":false}`, 401, 200, 200, 401, 403},
		{"PUT", "/v1/jobs/echo/" + job + "1", `{"data":1}`, 401, 202, 202, 401, 202},
		{"POST", "/v1/jobs/echo", `[{"id":"` + job + `2","data":2}]`, 401, 202, 202, 401, 202},
		{"GET", "/v1/jobs", "", 401, 200, 200, 401, 200},
		{"GET", "/v1/jobs/" + job + "1", "", 401, 200, 200, 401, 200},
		{"GET", "/v1/jobs/echo/" + job + "1", "", 401, 200, 200, 401, 200},
		{"GET", "/v1/jobs/echo/" + job + "1/attempts", "", 401, 200, 200, 401, 200},
		{"POST", "/v1/jobs/echo/fetch", "", 401, 200, 204, 401, 200}, // the first gets the one, the second the other
		{"POST", "/v1/jobs/echo/" + job + "1/extend", `{"attempt":3,"timeout":600000}`, 401, 200, 200, 401, 200},
		{"POST", "/v1/jobs/echo/" + job + "1", `{"attempt":3,"status":"succeeded"}`, 401, 200, 200, 401, 200},
		{"GET", "/v1/archived-jobs", "", 401, 200, 200, 401, 200},
		{"POST", "/v1/jobs/" + job + "1/replay", "", 401, 201, 201, 401, 201},
		{"POST", "/v1/jobs/echo/" + job + "1/replay", "", 401, 201, 201, 401, 201},
		{"DELETE", "/v1/jobs/echo/" + job + "2", "", 401, 204, 204, 401, 202}, // the first cancels it
		{"DELETE", "/v2/job-types/echo?force=true", "", 401, 204, 404, 401, 403},
		// The operator defines the machine, any client uses its labels.
		{"PUT", "/state-machines", machine, 401, 403, 200, 401, 403},
		{"GET", "/state-machines", "", 401, 200, 200, 401, 200},
		{"GET", "/state-machines/m", "", 401, 200, 200, 401, 200},
		{"POST", "/state-machines/m/labels/x?wait=0", `{"metadata":{}}`, 401, 409, 409, 401, 201}, // Bob comes first
		{"PATCH", "/state-machines/m/labels/x?wait=0", `{"metadata":{}}`, 401, 200, 200, 401, 200},
		{"GET", "/state-machines/m/labels", "", 401, 200, 200, 401, 200},
		{"GET", "/state-machines/m/labels/x", "", 401, 200, 200, 401, 200},
		{"GET", "/state-machines/m/labels/x/history", "", 401, 200, 200, 401, 200},
		{"POST", "/state-machines/m/labels/x/retry", "", 401, 409, 409, 401, 409},
		{"POST", "/state-machines/m/labels/x/evaluate?dry_run=true", "", 401, 200, 200, 401, 200},
		{"POST", "/state-machines/m/labels/x/evaluate?wait=0", "", 401, 200, 200, 401, 200},
		{"DELETE", "/state-machines/m/labels/x", "", 401, 204, 204, 401, 204},
	}
	var tried []string
	for _, r := range routes {
		path, _, _ := strings.Cut(r.path, "?")
		tried = append(tried, r.method+" "+path)
	}
	requireAllTried(t, tried)
	test := func(t *testing.T, redis *rdbtest.Server, scheme string) {
		a := newAPI(t, redis)
		a.scheme = scheme
		for _, r := range routes {
			for _, caller := range []struct {
				who  string
				want int
			}{{"", r.anyone}, {"nobody--9", r.junk}, {"NOT a token", r.junk}, {bob, r.other}, {alice, r.client}, {rootKey, r.root}} {
				if caller.want == 0 {
					continue
				}
				a.Ahead += time.Second // tokens are due to be read: refused Digests do not wait for that
				got := a.Do(caller.who, r.method, r.path, r.body)
				assert.Equal(t, caller.want, got.Status, "%s %s as %q: %s", r.method, r.path, caller.who, got.Body)
				if caller.want == http.StatusUnauthorized {
					challenges := got.Header.Values("WWW-Authenticate")
					require.Len(t, challenges, 3)
					assert.Contains(t, challenges[0], `Digest realm="routemaster", qop="auth", algorithm=MD5, nonce="`)
					assert.Contains(t, challenges[1], `Digest realm="routemaster", qop="auth", algorithm=SHA-256, nonce="`)
					assert.Equal(t, `Basic realm="routemaster", charset="UTF-8"`, challenges[2])
				}
			}
		}
		storetest.RequireAllSound(t, a.Bus)
	}
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) { test(t, redis, "") })
	algorithms := []string{"SHA-256", "MD5"}
	for _, algorithm := range algorithms[:rdbtest.Fewer(len(algorithms))] {
		t.Run(algorithm, func(t *testing.T) { test(t, rdbtest.Embedded(t), algorithm) })
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	assert.Equal(t, 404, a.Problem("", "GET", "/nowhere", "").Status)
	assert.Equal(t, 404, a.Problem("", "PROPFIND", "/nowhere", "").Status)
	assert.Equal(t, 404, a.Problem(alice, "GET", "/topics/", "").Status)
	for path, allow := range map[string]string{
		"/topics/widgets": "GET, HEAD, POST, DELETE", "/topics": "GET, HEAD", "/subscription": "POST, DELETE", "/subscriber": "GET, HEAD, POST, PATCH, DELETE", "/health": "GET, HEAD", "/api_tokens": "GET, HEAD, POST",
	} {
		assert.Equal(t, 405, a.Problem(alice, "PUT", path, "").Status)
		assert.Equal(t, allow, a.Do(alice, "PUT", path, "").Header.Get("Allow"), path)
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, status := range map[string]int{"/health": 200, "/health/ready": 200, "/topics": 401, "/subscription": 405} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, a.Run()+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, status, resp.StatusCode, path)
		assert.Empty(t, text)
	}
}

// TestPathsAreCleaned sends every route as clients do that join a bus address with a slash at its
// end, or names their paths from "./" on.
func TestPathsAreCleaned(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.ForceTLS = true })
	answer := func(method, path string) (status int, location string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
		u, err := url.ParseRequestURI(path)
		require.NoError(t, err)
		r.URL, r.RequestURI = u, path
		r.Header.Set("X-Forwarded-Proto", "https")
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Location")
	}
	require.NoError(t, chi.Walk(a.Server.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := strings.NewReplacer("{", "", "}", "").Replace(route)
		want, _ := answer(method, path)
		for _, sent := range []string{"/" + path, "/." + path, "/.//" + path, strings.ReplaceAll(path, "/", "//"), strings.ReplaceAll(path, "/", "/./")} {
			got, location := answer(method, sent)
			assert.Equal(t, want, got, "%s %s", method, sent)
			assert.Empty(t, location)
		}
		return nil
	}))

	event := `{"type":"noop","url":"https://x.example/"}`
	for path, status := range map[string]int{
		"//topics/a": 200, "/topics//b": 200, "/topics/./c": 200, "/.//topics/%64": 200,
		"/topics/.": 400, "/topics//": 404, "/topics/a/../e": 404, "/topics/a//": 404,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(event))
		r.SetBasicAuth(alice, "")
		r.Header.Set("X-Forwarded-Proto", "https")
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		assert.Equal(t, status, w.Code, path)
	}
	topics, _, err := storetest.Topics(t.Context(), inspect.OfBus(a.Bus))
	require.NoError(t, err)
	assert.Len(t, topics, 4)
	got := a.Do("", "GET", "//topics?x=//y", "")
	assert.Equal(t, "https://example.com/topics?x=//y", got.Header.Get("Location"))
	assert.Equal(t, 200, a.Do("", "GET", "//health", "").Status)
	status, _ := answer("PATCH", "/state-machines/m/labels/%2E")
	assert.Equal(t, 401, status, "a name is not a segment")
}

func TestPathsAreDecoded(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "svc:one", "svc"))
	a.RequireDone("svc:one", "POST", "/topics/a%5Fb", `{"type":"noop","url":"https://x.example/"}`)
	a.RequireDone(rootKey, "DELETE", "/api_tokens/svc%3Aone", "")
	name, err := a.ClientName(t.Context(), "svc:one")
	require.NoError(t, err)
	assert.Empty(t, name)
}
