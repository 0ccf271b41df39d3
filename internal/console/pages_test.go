package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// trouble is a bus with trouble, and a topic of a name that is to be shown as it is.
func trouble() *consoletest.Live {
	f := consoletest.Trouble()
	f.Topics = append(f.Topics, overview.Topic{Name: "<script>", Publisher: `"><img src=x>`, State: overview.Unheard})
	return consoletest.NewLive(f)
}

// The clients of the tests, by their tokens.
const shop, search = "shop--1", "search--1"

// busy is a console of a bus with two subscribers, one with events of all kinds.
func busy(t *testing.T, redis *rdbtest.Server, adjust ...func(*console.Config)) *desk {
	t.Helper()
	d := newDesk(t, redis, append([]func(*console.Config){func(c *console.Config) { c.Live = trouble() }}, adjust...)...)
	root := webtest.RootKey
	for _, token := range []string{shop, search, "warehouse--1"} {
		name, _, _ := strings.Cut(token, "--")
		require.Equal(t, http.StatusCreated, d.Do(root, "POST", "/api_tokens", `{"name":"`+name+`","token":"`+token+`"}`).Status)
	}
	d.RequireDone(shop, "POST", "/subscriber", `{"topics":["widgets","parcels"],"callback":"https://shop.example/events","uuid":"the-uuid"}`)
	d.RequireDone(shop, "PATCH", "/subscriber", `{"dead_letters":{"attempts":3}}`)
	d.RequireDone(search, "POST", "/subscriber", `{"topics":["parcels"],"callback":"https://search.example/events","uuid":"another"}`)
	require.Equal(t, http.StatusOK, d.Do("warehouse--1", "POST", "/topics/widgets",
		`{"type":"update","url":"https://example.com/1","data":{"n":9007199254740993,"x":1.0,"t":"</script>"}}`).Status)
	d.work(t)
	return d
}

// The jobs of [busy]: one that waits, and one that has ended.
const (
	waitingJob = "job_1f7c4a52-6f7e-4a35-8f0e-0c6f3f1f0001"
	endedJob   = "job_1f7c4a52-6f7e-4a35-8f0e-0c6f3f1f0002"
)

// work has the bus have jobs, and a state machine with a label.
func (d *desk) work(t *testing.T) {
	t.Helper()
	assert.Equal(t, http.StatusCreated, d.Do(shop, "POST", "/v2/job-types",
		`{"name":"invoice","delivery_strategy":"at_least_once","attempts":3,"concurrency":2,"url":null}`).Status)
	for _, id := range []string{waitingJob, endedJob} {
		assert.Equal(t, http.StatusAccepted, d.Do(shop, "PUT", "/v1/jobs/invoice/"+id,
			`{"id":"`+id+`","data":{"n":9007199254740993,"x":1.0,"t":"</script>"}}`).Status)
	}
	assert.Equal(t, http.StatusNoContent, d.Do(shop, "DELETE", "/v1/jobs/invoice/"+endedJob, "").Status)
	assert.Equal(t, http.StatusOK, d.Do(webtest.RootKey, "PUT", "/state-machines",
		`{"state_machines":{"parcel":{"states":[{"gate":"start","exit_condition":"metadata.go","next":"end"},{"gate":"end","exit_condition":false}]}}}`).Status)
	assert.Equal(t, http.StatusCreated, d.Do(shop, "POST", "/state-machines/parcel/labels/p1?wait=0",
		`{"metadata":{"n":9007199254740993,"t":"</script>"}}`).Status)
}

// hrefs are the links of a page within the console, without those to files.
func hrefs(body string) (all []string) {
	for _, found := range regexp.MustCompile(`<a [^>]*href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		all = append(all, strings.ReplaceAll(found[1], "&amp;", "&"))
	}
	return all
}

// crawl opens the page at a path and all that it leads to, and returns them by their paths.
func crawl(t *testing.T, b *browser) map[string]string {
	t.Helper()
	seen, todo := map[string]string{}, []string{""}
	for len(todo) > 0 && len(seen) < 500 {
		path := todo[0]
		todo = todo[1:]
		if _, done := seen[path]; done {
			continue
		}
		w := b.send(path, nil)
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
		seen[path] = w.Body.String()
		base, err := url.Parse("http://x/console/" + path)
		require.NoError(t, err)
		for _, href := range hrefs(seen[path]) {
			to, err := base.Parse(href)
			require.NoError(t, err, href)
			next, within := strings.CutPrefix(to.RequestURI(), "/console/")
			if to.Host == "x" && within && to.Fragment == "" {
				todo = append(todo, next)
			}
		}
	}
	return seen
}

func TestEachPageOpensForRootAndItsClient(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d := busy(t, redis)
		for who, pages := range map[string][]string{
			webtest.RootKey: {"work", "tokens", "tokens/new", "subscribers/search", "subscribers/shop/settings?id=", "topics/%3Cscript%3E", "topics/widgets/delete", "job-types/invoice/enqueue", "machines/parcel?state=end"},
			shop: {"subscribers/shop", "subscribers/shop/settings", "subscribers/shop/delete", "publish", "api", "subscribers/shop/topics/parcels/unsubscribe", "job-types/invoice/pause",
				"job-types/invoice/jobs/" + waitingJob + "/cancel", "machines/parcel/labels/p1/delete"},
		} {
			seen := crawl(t, d.as(t, who))
			for _, path := range pages {
				found := false
				for opened := range seen {
					found = found || strings.HasPrefix(opened, path)
				}
				assert.True(t, found, "no page leads to %s", path)
			}
			for path, body := range seen {
				assert.NotContains(t, body, "--1", path)
				assert.NotContains(t, body, webtest.RootKey, path)
				assert.NotContains(t, body, "<img", path)
				assert.NotContains(t, body, "<script>", path)
			}
		}
	})
}
