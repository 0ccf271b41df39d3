package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// hrefs returns the links of a page within the console, except links to files.
func hrefs(body string) (all []string) {
	for _, found := range regexp.MustCompile(`<a [^>]*href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		all = append(all, strings.ReplaceAll(found[1], "&amp;", "&"))
	}
	return all
}

// crawl opens the page at a path and all that it leads to, and returns them by their paths.
func crawl(t *testing.T, b *consoletest.Browser) map[string]string {
	t.Helper()
	seen, todo := map[string]string{}, []string{""}
	for len(todo) > 0 && len(seen) < 500 {
		path := todo[0]
		todo = todo[1:]
		if _, done := seen[path]; done {
			continue
		}
		w := b.Send(path, nil)
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
		d := consoletest.Full(t, redis)
		for who, pages := range map[string][]string{
			webtest.RootKey: {"work/main", "tokens", "tokens/new", "subscribers/search", "subscribers/shop/settings?id=", "topics/%3Cscript%3E", "topics/widgets/delete", "job-types/invoice/enqueue", "job-types/invoice/settings", "job-types/invoice/delete", "machines/parcel?state=end", "machines/parcel/create"},
			shop: {"subscribers/shop", "subscribers/shop/settings", "subscribers/shop/delete", "publish", "subscribers/shop/topics/parcels/unsubscribe", "job-types/invoice/pause",
				"job-types/invoice/jobs/" + consoletest.WaitingJob + "/cancel", "machines/parcel/labels/p1/delete", "machines/parcel/labels/p1/metadata"},
		} {
			seen := crawl(t, d.As(who))
			for _, path := range pages {
				found := false
				for opened := range seen {
					found = found || strings.HasPrefix(opened, path)
				}
				assert.True(t, found, "no page leads to %s", path)
			}
			assert.Contains(t, seen["help"], `/openapi.json"`)
			assert.Contains(t, seen["subscribers/shop"], "Attempt 3, next at <time")
			assert.Contains(t, seen["subscribers/shop"], "Mean delivery 84ms · mean age 0.6s in the last 15 min.")
			for path, body := range seen {
				assert.NotContains(t, body, "--1", path)
				assert.NotContains(t, body, webtest.RootKey, path)
				assert.NotContains(t, body, "<img", path)
				assert.NotContains(t, body, "<script>", path)
			}
		}
	})
}

func TestASubscribersPageSaysHowDeliveriesAreSigned(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.RequireDone(shop, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://shop.example/"}`)
	signing := func() string { return d.As(shop).Send("subscribers/shop", nil).Body.String() }
	assert.Contains(t, signing(), "deliveries are not signed")
	require.Equal(t, 201, d.Do(shop, "POST", "/subscriber/secrets", "").Status)
	assert.Contains(t, signing(), "<dt>Signing</dt><dd>hmac-sha256</dd>")
}

func TestATopicThatTheFiguresDoNotHaveYetIsShown(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.RequireDone(consoletest.Warehouse, "POST", "/topics/fresh", webtest.EventText(1))
	for who, b := range all(d) {
		w := b.Send("topics/fresh", nil)
		assert.Equal(t, http.StatusOK, w.Code, who)
		assert.Contains(t, w.Body.String(), "<dd>warehouse</dd>", who)
		assert.Contains(t, w.Body.String(), "nobody listens", who)
		assert.Equal(t, who == webtest.RootKey || who == consoletest.Warehouse, strings.Contains(w.Body.String(), "Delete topic…"), who)
		requireClean(t, "topics/fresh as "+who, w.Body.String(), 1)
		assert.Equal(t, http.StatusNotFound, b.Send("topics/none", nil).Code, who)
	}
}
