//go:build !race

package browser_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
)

var pictures = flag.String("pictures", "", "a folder to write a picture of each page to")

// stepTimeout is for how long a test waits for one thing, as for the browser to start. Only a test
// that fails waits that long.
const stepTimeout = 2 * time.Minute

// browser is the browser of all tests.
var browser struct {
	context.Context
	// missing is why there is none.
	missing error
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	path := find("chromium", "chromium-headless-shell", "google-chrome")
	if path == "" {
		browser.missing = errors.New("no chromium here: .ci/install chromium chromium")
		if os.Getenv("CI") != "" {
			fmt.Fprintln(os.Stderr, browser.missing)
			return 1
		}
		return m.Run()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(stepTimeout),
		chromedp.Flag("disable-dev-shm-usage", true),
		// Nothing but the console is reached.
		chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-sandbox", os.Getuid() == 0))
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(all)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the browser did not start:", err)
		return 1
	}
	browser.Context = ctx
	return m.Run()
}

func find(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// serve makes a console that the browser can reach. Without a browser the test is skipped.
func serve(t testing.TB, adjust ...func(*console.Config)) *consoletest.Desk {
	t.Helper()
	return serveOn(t, rdbtest.Embedded(t), adjust...)
}

// serveOn is [serve] with a Redis.
func serveOn(t testing.TB, redis *rdbtest.Server, adjust ...func(*console.Config)) *consoletest.Desk {
	t.Helper()
	if browser.missing != nil {
		t.Skip(browser.missing)
	}
	d := consoletest.New(t, redis, adjust...)
	d.Serve()
	return d
}

// tab is a tab of the browser that shows a console.
type tab struct {
	context.Context
	t    testing.TB
	desk *consoletest.Desk
	// session is the logged-in session, after [tab.logIn].
	session *consoletest.Browser
	// expected are parts of complaints of the browser that a test provokes.
	expected []string

	mu sync.Mutex
	// requests are the requested addresses, complaints the browser's complaints.
	requests, complaints []string
}

// open opens a tab. At its end the test fails if the browser complained: about something that the
// page's policy forbids, an exception, an error on the console, a 5xx, or a request to another
// origin.
func open(t testing.TB, d *consoletest.Desk) *tab {
	t.Helper()
	// Cookies of one test are not another's.
	return newTab(t, d, browser.Context, chromedp.WithNewBrowserContext())
}

// another opens another tab beside one, with its cookies and its connections.
func (b *tab) another() *tab {
	b.t.Helper()
	return newTab(b.t, b.desk, b.Context)
}

func newTab(t testing.TB, d *consoletest.Desk, beside context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(beside, options...)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t, desk: d}
	require.NoError(t, chromedp.Listen(ctx, b.notice))
	call(b, network.Enable, network.EnableParams{})
	call(b, audits.Enable, cdp.Empty{})
	call(b, log.Enable, cdp.Empty{})
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Empty(t, b.complaints, "the browser complained")
	})
	return b
}

// notice notes an event of the tab.
func (b *tab) notice(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests = append(b.requests, e.Request.URL)
		b.mu.Unlock()
		if !strings.HasPrefix(e.Request.URL, b.desk.URL) && !strings.HasPrefix(e.Request.URL, "about:") {
			b.complain("request to another origin: " + e.Request.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 500 {
			b.complain(fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL))
		}
	case *runtime.EventExceptionThrown:
		b.complain("exception: " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.complain(fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			issue := e.Issue.Details.ContentSecurityPolicyIssueDetails
			b.complain(fmt.Sprintf("content security policy: %s %s", issue.ViolatedDirective, issue.BlockedURL))
		}
	}
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return
		}
	}
	b.complaints = append(b.complaints, text)
}

// expect says which complaints the test provokes.
func (b *tab) expect(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, parts...)
}

// step bounds the time of one thing that a test waits for.
func (b *tab) step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.Context, stepTimeout)
}

// run runs actions in the tab.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.step()
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := b.step()
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	require.NoError(b.t, err)
	return result
}

// visit opens a page of the console, and returns the status.
func (b *tab) visit(path string) (status int) {
	b.t.Helper()
	return b.follow(chromedp.Navigate(b.desk.URL + path))
}

// goTo opens any address.
func (b *tab) goTo(address string) {
	b.t.Helper()
	b.run(chromedp.Navigate(address))
}

// follow runs a script that leads to another page, waits for that page, and returns its status.
func (b *tab) follow(actions ...chromedp.Action[chromedp.Void]) (status int) {
	b.t.Helper()
	ctx, cancel := b.step()
	defer cancel()
	page, err := chromedp.RunResponse(ctx, actions...)
	require.NoError(b.t, err)
	return int(page.Status)
}

// fill types text into a field.
func (b *tab) fill(field, text string) {
	b.t.Helper()
	b.run(chromedp.SendKeys(chromedp.CSS(field), text))
}

// click clicks on an element that leads to another page, and returns its status.
func (b *tab) click(element string) (status int) {
	b.t.Helper()
	return b.follow(chromedp.Click(chromedp.CSS(element)))
}

// text returns the text of an element.
func (b *tab) text(element string) string {
	b.t.Helper()
	return ask[string](b, "document.querySelector("+strconv.Quote(element)+").textContent")
}

// ask evaluates an expression of JavaScript. If that is a promise, its value is awaited.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := b.step()
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return value
}

// do evaluates statements of JavaScript.
func (b *tab) do(statements string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void]("(async () => {"+statements+"})()", chromedp.EvalAwaitPromise))
}

// await waits until an expression of JavaScript is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	b.do("while (!(" + expression + ")) await new Promise((done) => (window.wait ?? setTimeout)(done, 20));")
}

// requested are the paths of the console that were asked for since the last call.
func (b *tab) requested() (paths []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range b.requests {
		paths = append(paths, strings.TrimPrefix(address, b.desk.URL))
	}
	b.requests = nil
	return paths
}

// logIn logs in with a secret and gives the tab the session.
func (b *tab) logIn(secret string) {
	b.t.Helper()
	b.session = b.desk.As(secret, "person", "Ada")
	for _, cookie := range b.session.Cookies {
		call(b, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: b.desk.URL, Path: "/"})
	}
}

// size sets the size of the window, and the theme.
func (b *tab) size(width int64, theme string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, 844))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
}

// pictures writes pictures of the whole page in both themes, wide and narrow, if asked for.
func (b *tab) pictures(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	for _, theme := range []string{"light", "dark"} {
		for size, width := range map[string]int64{"wide": 1280, "narrow": 390} {
			b.size(width, theme)
			image, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
			require.NoError(b.t, err)
			file := strings.ReplaceAll(name, "/", "_") + "-" + theme + "-" + size + ".png"
			require.NoError(b.t, os.WriteFile(filepath.Join(*pictures, file), image, 0o644))
		}
	}
}
