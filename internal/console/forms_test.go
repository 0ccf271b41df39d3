package console_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// all are the browsers of root and of clients, by their tokens.
func all(d *consoletest.Desk) map[string]*consoletest.Browser {
	d.T.Helper()
	by := map[string]*consoletest.Browser{}
	for _, secret := range []string{webtest.RootKey, shop, search, consoletest.Warehouse} {
		by[secret] = d.As(secret)
	}
	return by
}

// wrongWith returns a page's error messages by field; the empty name is the whole form.
func wrongWith(body string) map[string]string {
	wrong := map[string]string{}
	for _, found := range regexp.MustCompile(`id="(?:field-([^"]*)-error|problem)">([^<]*)<`).FindAllStringSubmatch(body, -1) {
		wrong[found[1]] = html.UnescapeString(found[2])
	}
	return wrong
}

func TestFormsDoWhatTheySay(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d := consoletest.Full(t, redis)
		by := all(d)
		for _, c := range []struct {
			who, path string
			typed     []string
			said      string
		}{
			{shop, "subscribers/shop/pause", nil, "Paused shop until somebody resumes it."},
			{shop, "subscribers/shop/resume", nil, "Resumed shop."},
			{webtest.RootKey, "subscribers/shop/pause", []string{"for", "15m"}, "Paused shop for 15m."},
			{webtest.RootKey, "subscribers/shop/resume", nil, "Resumed shop."},
			{shop, "subscribers/shop/retry", nil, "Trying shop now."},
			{webtest.RootKey, "subscribers/search/retry", nil, "Trying search now."},
			{shop, "subscribers/shop/test", nil, "Sent a test event to shop."},
			{shop, "subscribers/shop/topics/parcels/unsubscribe", nil, "Unsubscribed shop from parcels."},
			{shop, "subscribers/shop/settings", []string{"max", "200", "strict_order", "on"}, "Saved the settings of shop."},
			{shop, "subscribers/shop/settings", nil, "Nothing was changed."},
			{shop, "publish", []string{"topic", "orders", "type", "noop", "url", "https://example.com/1", "data", "{}"}, "Published to orders. Nobody is subscribed to it."},
			{webtest.RootKey, "publish", []string{"as", "warehouse", "topic", "widgets", "type", "noop", "url", "https://example.com/1"}, "Published to widgets for "},
			{shop, "subscribers/shop/dead-letters/discard", nil, "Discarded 1 dead letter with 2 events."},
			{shop, "job-types/invoice/pause", nil, "Paused invoice."},
			{webtest.RootKey, "job-types/invoice/resume", nil, "Resumed invoice."},
			{shop, "job-types/invoice/enqueue", []string{"data", `{"n":9007199254740995}`}, "9007199254740995"},
			{shop, "job-types/invoice/jobs/" + consoletest.CancelledJob + "/replay", nil, "9007199254740993"},
			{shop, "job-types/invoice/jobs/" + consoletest.WaitingJob + "/cancel", nil, "Cancelled the job."},
			{shop, "machines/parcel/labels/p1/evaluate", nil, "Evaluated p1. It is in start."},
			{shop, "job-types/invoice/settings", []string{"concurrency", "5", "url", "https://x.example/", "timeout", "60000"}, "Saved the settings of invoice."},
			{shop, "job-types/invoice/settings", nil, "Nothing was changed."},
			{shop, "machines/parcel/labels/p1/metadata", []string{"metadata", `{"n":9007199254740995}`}, "9007199254740995"},
			{shop, "machines/parcel/create", []string{"label", "p9", "metadata", `{"go":true}`}, "Made the label p9."},
			{webtest.RootKey, "job-types/invoice/delete", []string{"name", "invoice"}, "Deleted the job type invoice."},
			{shop, "machines/parcel/labels/p1/delete", []string{"name", "p1"}, "Deleted the label p1."},
			{consoletest.Warehouse, "topics/widgets/delete", []string{"name", "widgets"}, "Deleted the topic widgets."},
			{webtest.RootKey, "subscribers/shop/delete", []string{"name", "shop"}, "Deleted the subscriber shop."},
		} {
			status, body := by[c.who].Submit(c.path, c.typed...)
			assert.Equal(t, http.StatusSeeOther, status, "%s: %s", c.path, body)
			assert.Contains(t, body, c.said, c.path)
		}
		assert.Equal(t, http.StatusNotFound, d.Do(shop, "GET", "/subscriber", "").Status)
	})
}

// TestTheCommandsOfPagesRun runs the curl commands that pages show in a shell.
func TestTheCommandsOfPagesRun(t *testing.T) {
	rdbtest.NeedCommand(t, "curl")
	d := consoletest.Full(t, rdbtest.Embedded(t))
	bus := d.Run()
	for _, c := range []struct{ who, path, command string }{
		{shop, "subscribers/shop/pause", "/subscriber/pause"},
		{shop, "subscribers/shop/resume", "/subscriber/resume"},
		{webtest.RootKey, "subscribers/shop/pause", "/subscribers/shop/pause"},
		{webtest.RootKey, "subscribers/shop/resume", "/subscribers/shop/resume"},
		{webtest.RootKey, "subscribers/shop/retry", "/subscribers/shop/retry"},
		{webtest.RootKey, "subscribers/shop/settings", "/subscribers/shop"},
		{webtest.RootKey, "subscribers/shop/dead-letters/discard", "/subscribers/shop/dead_letters/discard"},
		{webtest.RootKey, "subscribers/shop/topics/widgets/unsubscribe", "/subscribers/$SUBSCRIBER/topics/widgets"},
		{shop, "subscribers/shop/delete", "/subscriber"},
		{webtest.RootKey, "subscribers/search/delete", "/subscribers/$SUBSCRIBER"},
	} {
		body := d.As(c.who).Send(c.path, nil).Body.String()
		shown := regexp.MustCompile(`<pre><code>(curl [^<]*)</code>`).FindStringSubmatch(body)
		require.NotNil(t, shown, "%s: %s", c.path, body)
		command := html.UnescapeString(shown[1])
		assert.Contains(t, command, `"$BUS`+c.command+`"`)
		holder := map[string]string{"shop": shop, "search": search}[strings.Split(c.path, "/")[1]]
		run := exec.CommandContext(t.Context(), "sh", "-c", command+` --fail-with-body -s`)
		run.Env = append(os.Environ(), "BUS="+bus, "TOKEN="+c.who, "SUBSCRIBER="+holder)
		said, err := run.Output()
		assert.NoError(t, err, "%s: %s", command, said)
	}
}

func TestFormsAreShownAgainWithWhatIsWrong(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	by := all(d)
	for _, c := range []struct {
		who, path string
		typed     []string
		status    int
		field     string
		said      string
	}{
		{shop, "subscribers/shop/delete", []string{"name", "search"}, 422, "", "type shop"},
		{shop, "subscribers/shop/settings", []string{"max", "0"}, 400, "max", "10000"},
		{shop, "subscribers/shop/settings", []string{"max", "many"}, 400, "max", "integer"},
		{shop, "subscribers/shop/settings", []string{"callback", "http://x"}, 400, "callback", "https"},
		{shop, "subscribers/shop/settings", []string{"topics", "ok\nNOT"}, 400, "topics", "a-z"},
		{shop, "subscribers/shop/settings", []string{"dead_letters/attempts", "-1"}, 400, "dead_letters/attempts", ""},
		{search, "subscribers/search/settings", []string{"dead_letters/attempts", "5"}, 422, "dead_letters/attempts", "counts only with “Dead letters” checked"},
		{shop, "subscribers/shop/settings", []string{"max", "200", "digest", "another"}, 409, "", "changed while you edited"},
		{shop, "publish", []string{"topic", "widgets", "type", "noop", "url", "https://example.com/1"}, 403, "topic", ""},
		{shop, "publish", []string{"topic", "W", "type", "noop", "url", "https://example.com/1"}, 400, "topic", "a-z"},
		{shop, "publish", []string{"topic", "orders", "type", "noop", "url", "ftp://x"}, 400, "url", "https"},
		{shop, "publish", []string{"topic", "orders", "type", "noop", "url", "https://example.com/1", "data", "{"}, 422, "data", "JSON"},
		{shop, "publish", []string{"topic", "orders", "type", "noop", "url", "https://example.com/1", "data", `{"a":1,"a":2}`}, 422, "data", "duplicate"},
		{webtest.RootKey, "publish", []string{"as", "nobody", "topic", "orders", "type", "noop", "url", "https://example.com/1"}, 422, "as", "no client"},
		{webtest.RootKey, "tokens/new", []string{"name", "Not A Name"}, 400, "name", "a-z"},
		{shop, "subscribers/shop/replay", []string{"topic", "widgets", "since", "yesterday"}, 422, "since", "2026"},
		{shop, "job-types/invoice/enqueue", []string{"data", "{"}, 422, "data", "JSON"},
		{shop, "job-types/invoice/jobs/" + consoletest.WaitingJob + "/replay", nil, 400, "", "queued"},
		{shop, "machines/parcel/labels/p1/retry", nil, 409, "", "errored"},
		{shop, "machines/parcel/labels/p1/delete", []string{"name", "p2"}, 422, "", "type p1"},
		{search, "job-types/invoice/pause", nil, 403, "", "another client's"},
		{shop, "subscribers/shop/replay", []string{"topic", "parcels"}, 409, "topic", "history"},
		{search, "job-types/invoice/settings", []string{"concurrency", "5"}, 403, "", "another client's"},
		{search, "job-types/invoice/delete", []string{"name", "invoice"}, 403, "", "another client's"},
		{shop, "job-types/invoice/delete", []string{"name", "invoices"}, 422, "", "type invoice"},
		{shop, "job-types/invoice/settings", []string{"concurrency", "0"}, 400, "concurrency", "32767"},
		{shop, "job-types/invoice/settings", []string{"schedule_data", "{"}, 422, "schedule_data", "JSON"},
		{shop, "job-types/invoice/settings", []string{"concurrency", "5", "digest", "another"}, 409, "", "changed while you edited"},
		{shop, "machines/parcel/labels/p1/metadata", []string{"metadata", "[1]"}, 422, "metadata", "object"},
		{shop, "machines/parcel/create", []string{"label", "p1", "metadata", "{}"}, 409, "", ""},
		{shop, "machines/parcel/create", []string{"metadata", "{}"}, 422, "label", "called"},
	} {
		status, body := by[c.who].Submit(c.path, c.typed...)
		assert.Equal(t, c.status, status, "%s: %s", c.path, c.typed)
		wrong := wrongWith(body)
		assert.Len(t, wrong, 1, "%s: %s", c.path, c.typed)
		assert.Contains(t, wrong[c.field], c.said, "%s: %s", c.path, c.typed)
		kept := consoletest.Fields(body)
		for i := 0; i < len(c.typed) && c.field != ""; i += 2 {
			assert.Equal(t, c.typed[i+1], kept.Get(c.typed[i]), "%s: what was typed stays", c.path)
		}
	}
	assert.Equal(t, http.StatusOK, d.Do(shop, "GET", "/subscriber", "").Status)
}

func TestStaleSettingsShowBothVersions(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(shop)
	form := consoletest.Fields(b.Send("subscribers/shop/settings", nil).Body.String())
	form.Set("max", "200")
	d.RequireDone(shop, "PATCH", "/subscriber", `{"topics":["widgets","orders"],"max":300}`)
	w := b.Send("subscribers/shop/settings", form)
	require.Equal(t, http.StatusConflict, w.Code)
	assert.Contains(t, w.Body.String(), `value="200"`)
	assert.Contains(t, w.Body.String(), `Saved now: <code>300</code>`)
	assert.Contains(t, w.Body.String(), "Saved now: <code>orders\nwidgets</code>")
	assert.Contains(t, d.Do(shop, "GET", "/subscriber", "").Body, `"max":300`)
	again := b.Send("subscribers/shop/settings", consoletest.Fields(w.Body.String()))
	assert.Equal(t, http.StatusSeeOther, again.Code, "who has seen both may save")
	assert.Contains(t, d.Do(shop, "GET", "/subscriber", "").Body, `"max":200`)
}

// TestADeletionCancelsNoMoreJobsThanItSaid enqueues jobs while a visitor reads how many would be
// cancelled. Two jobs of the scene have not ended.
func TestADeletionCancelsNoMoreJobsThanItSaid(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(shop)
	const path = "job-types/invoice/delete"
	page := b.Send(path, nil).Body.String()
	for _, button := range []string{"cancel 2 jobs</button>", "cancel 3 jobs</button>"} {
		require.Contains(t, page, button)
		form := consoletest.Fields(page)
		form.Set("name", "invoice")
		b.Submit("job-types/invoice/enqueue", "data", "{}")
		w := b.Send(path, form)
		page = w.Body.String()
		require.Equal(t, http.StatusConflict, w.Code)
		assert.Contains(t, wrongWith(page)[""], "Nothing was done: jobs were enqueued meanwhile.")
	}
	assert.Contains(t, wrongWith(page)[""], "cancel 4 jobs now, not 3.")
	form := consoletest.Fields(page)
	form.Set("name", "invoice")
	assert.Equal(t, http.StatusSeeOther, b.Send(path, form).Code)
}

func TestATokenIsShownOnceAndMadeOnce(t *testing.T) {
	redis, now := rdbtest.Embedded(t), time.Now()
	d := consoletest.Full(t, redis, func(c *console.Config) { c.Now = func() time.Time { return now } })
	b := d.As(webtest.RootKey)
	form := consoletest.Fields(b.Send("tokens/new", nil).Body.String())
	form.Set("name", "billing")
	shown := regexp.MustCompile(`billing--[0-9a-f]{32}`)
	var clicks sync.WaitGroup
	var answers [2]string
	for i := range answers { // the browser shows the second one only
		clicks.Go(func() { answers[i] = shown.FindString(b.Send("tokens/new", form).Body.String()) })
	}
	clicks.Wait()
	made := answers[0]
	require.NotEmpty(t, made)
	require.Equal(t, made, answers[1])
	now = now.Add(2 * time.Second)
	for range 2 {
		again := b.Send("tokens/new", form)
		assert.Equal(t, http.StatusConflict, again.Code)
		assert.Empty(t, shown.FindString(again.Body.String()), "two clicks make one token, and a reload does not show it")
		assert.Contains(t, wrongWith(again.Body.String())[""], "This form was sent before.")
	}
	assert.Equal(t, 1, strings.Count(d.Do(webtest.RootKey, "GET", "/api_tokens", "").Body, "billing--"))
	assert.NotEqual(t, http.StatusUnauthorized, d.Do(made, "GET", "/topics", "").Status)
	for _, path := range []string{"tokens", "tokens/new"} {
		assert.Empty(t, shown.FindString(b.Send(path, nil).Body.String()), path)
	}
	assert.NotContains(t, d.ConsoleLog.String(), made)
	for key, value := range rdbtest.Dump(t, redis.Raw) {
		assert.False(t, strings.Contains(key, "console:") && strings.Contains(key+value, made), key)
	}

	list := b.Send("tokens?q=billing", nil).Body.String()
	id := regexp.MustCompile(`tokens/([0-9a-f]{12})/revoke`).FindStringSubmatch(list)
	require.NotNil(t, id)
	status, _ := b.Submit("tokens/"+id[1]+"/revoke", "name", "shop")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	_, body := b.Submit("tokens/"+id[1]+"/revoke", "name", "billing")
	assert.Contains(t, body, "Revoked a token of billing.")
	assert.Equal(t, http.StatusUnauthorized, d.Do(made, "GET", "/topics", "").Status)
	assert.Equal(t, http.StatusConflict, b.Send("tokens/new", form).Code)
	assert.NotContains(t, d.Do(webtest.RootKey, "GET", "/api_tokens", "").Body, "billing", "a revoked one is not made again")
}

func TestWhoOnlyLooksSeesNoButtons(t *testing.T) {
	rdbtest.OneRedisOnly(t, "Redis is not asked what a page shows to whom")
	d := consoletest.Full(t, rdbtest.Embedded(t))
	readOnly := consoletest.Full(t, rdbtest.Embedded(t), func(c *console.Config) { c.ReadOnly = true })
	for name, b := range map[string]*consoletest.Browser{
		"look only": d.As(webtest.RootKey, "look_only", "1"), "read-only": readOnly.As(webtest.RootKey),
	} {
		for path, body := range crawl(t, b) {
			main := body[strings.Index(body, "<main"):]
			assert.NotContains(t, main, `<a class="button`, "%s: %s", name, path)
			for _, form := range regexp.MustCompile(`<form [^>]*method="post"[^>]*>(?s:.*?)</form>`).FindAllString(main, -1) {
				if path != "display" && path != "login" {
					assert.NotContains(t, form, "<button", "%s: %s", name, path)
				}
			}
		}
	}
}

func TestOthersSeeNoneOfItsOwn(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(search)
	body := b.Send("subscribers/shop", nil).Body.String()
	assert.NotContains(t, body, "shop.example")
	assert.NotContains(t, body, "<button>Resume")
	for _, p := range console.All() {
		if !strings.HasPrefix(p.Path, "subscribers/{subscriber}/") {
			continue
		}
		assert.Equal(t, http.StatusForbidden, b.Send(d.Path(p), nil).Code, p.Path)
		if p.Submit != nil {
			assert.Equal(t, http.StatusForbidden, b.Send(d.Path(p), url.Values{"name": {"shop"}}).Code, p.Path)
		}
	}
	for _, p := range console.All() {
		if p.For == console.Root {
			assert.Equal(t, http.StatusForbidden, b.Send(p.Path, nil).Code, p.Path)
		}
	}
	assert.Contains(t, d.As(shop).Send("subscribers/shop", nil).Body.String(), `<a href="https://shop.example/events" rel="noopener noreferrer">`)
}

func TestOnlyWhoMayTryASubscriberIsLedToThat(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	for name, c := range map[string]struct {
		of   *consoletest.Browser
		want int
	}{
		"root": {d.As(webtest.RootKey), 1}, "itself": {d.As(search), 1}, "another": {d.As(shop), 0},
		"look only": {d.As(webtest.RootKey, "look_only", "1"), 0},
	} {
		links := strings.Count(c.of.Send("", nil).Body.String(), `href="./subscribers/search/retry"`)
		assert.Equal(t, c.want, links, name)
	}
}
