package console_test

import (
	"compress/gzip"
	"io"
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

// commonPages are the pages with a common part.
var commonPages = []string{"", "subscribers", "topics", "subscribers?q=shop&sort=-queued"}

func TestWhatIsOfOnePersonIsShownToNobodyElse(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Live = consoletest.NewLive(consoletest.Trouble()) })
	root, alice := d.As(webtest.RootKey, "person", "Ada"), d.As(webtest.Alice, "person", "Ann")
	bob := d.As(webtest.Bob, "person", "Ben", "look_only", "on")
	require.Equal(t, 303, alice.Send("display", map[string][]string{"theme": {"dark"}}).Code)
	const message = "The display is as you chose."
	require.NotContains(t, alice.Send("", nil, "X-Refresh", "1").Body.String(), message, "another tab leaves it to the next page")
	for i, path := range commonPages {
		pages := map[*consoletest.Browser]string{}
		for _, b := range []*consoletest.Browser{alice, bob, root, alice} { // the last from the cache
			w := b.Send(path, nil)
			require.Equal(t, 200, w.Code)
			pages[b] = w.Body.String()
			assert.Equal(t, i == 0 && b == alice && pages[bob] == "", strings.Contains(pages[b], message), "once, and to alice alone")
		}
		for b, own := range map[*consoletest.Browser]string{root: "(Ada)", alice: "(Ann)", bob: "(Ben)"} {
			for _, word := range []string{"(Ada)", "(Ann)", "(Ben)"} {
				assert.Equal(t, word == own, strings.Contains(pages[b], word), "%s of %s: %s", path, own, word)
			}
			assert.Equal(t, b == alice, strings.Contains(pages[b], `data-theme="dark"`), path)
			assert.Equal(t, b == bob, strings.Contains(pages[b], "look only"), path)
			assert.Equal(t, b == root, strings.Contains(pages[b], `href="./work"`), path)
			assert.Equal(t, b == root && path == "", strings.Contains(pages[b], "Try now"), path)
		}
	}
}

func TestWhatIsCommonIsMadeAnewWithEachSample(t *testing.T) {
	live := consoletest.NewLive(consoletest.Calm())
	d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Live = live })
	b := d.As(webtest.Alice)
	for _, path := range commonPages[:3] {
		for _, name := range []string{"before", "later"} {
			live.Change(func(f *overview.Figures) {
				f.Subscribers[0].Name, f.Subscribers[0].State, f.Topics[0].Name = name, overview.Gone, name
			})
			for range 2 {
				assert.Contains(t, b.Send(path, nil).Body.String(), ">"+name+"<", path)
			}
		}
	}
	live.Change(func(f *overview.Figures) {
		f.At, f.Redis = f.At.Add(-2e9), "connection refused"
		f.Topics[0].Name = "lost"
	})
	assert.Contains(t, b.Send("topics", nil).Body.String(), ">lost<", "the time is that of the last sample")
}

func TestACompressedPageIsTheSame(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Live = consoletest.NewLive(consoletest.Trouble()) })
	b := d.As(webtest.RootKey)
	for _, path := range append(commonPages, "help") {
		plain := b.Send(path, nil, "Accept-Encoding", "identity, gzip;q=0")
		assert.Empty(t, plain.Header().Get("Content-Encoding"), path)
		packed := b.Send(path, nil, "Accept-Encoding", "gzip, deflate, br")
		assert.Equal(t, []string{"gzip"}, packed.Header().Values("Content-Encoding"), path)
		assert.Equal(t, []string{"Accept-Encoding"}, packed.Header().Values("Vary"), path)
		assert.Less(t, packed.Body.Len(), plain.Body.Len()/2)
		r, err := gzip.NewReader(packed.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, plain.Body.String(), string(text), path)
	}
}

// maxRefresh is how many bytes a refresh may have, compressed.
const maxRefresh = 9_000

func TestARefreshOfLongListsIsSmall(t *testing.T) {
	b := consoletest.New(t, rdbtest.Embedded(t), consoletest.Showing(consoletest.Many(1000))).As(webtest.RootKey)
	for _, path := range commonPages {
		size := b.Send(path, nil, "Accept-Encoding", "gzip").Body.Len()
		assert.LessOrEqual(t, size, maxRefresh, path)
		t.Logf("/%s: %d bytes", path, size)
	}
}
