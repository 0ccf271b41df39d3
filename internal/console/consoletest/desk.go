package consoletest

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/signature"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/webtest"
)

// Desk is a console under test, with the bus it belongs to.
type Desk struct {
	*webtest.API
	// Live has the figures; nil if they are the bus's own.
	Live *Live
	// ConsoleLog is the console's log.
	ConsoleLog *bytes.Buffer
	// URL is the console's URL, with a slash at its end, after [Desk.Serve].
	URL string

	// names maps the path parameters of pages to names that exist.
	names map[string]string
	// broken is a path of the API; see [Desk.Break].
	broken string
}

// New makes a console whose bus is empty but for the two tokens of webtest, and whose pages have no
// figures. Adjust changes its configuration.
func New(t testing.TB, redis *rdbtest.Server, adjust ...func(*console.Config)) *Desk {
	t.Helper()
	all := storetest.OpenAll(t, redis)
	d := &Desk{ConsoleLog: &bytes.Buffer{}}
	keys, err := signature.ParseKeyring(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	require.NoError(t, err)
	config := console.Config{
		RootKey: webtest.RootKey, Name: "Routemaster", Environment: "test", Version: "1.2.3",
		Sessions: console.NewSessions(all.First().Partition(), webtest.RootKey, time.Now), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(d.ConsoleLog, nil)),
	}
	for _, f := range adjust {
		f(&config)
	}
	d.Live, _ = config.Live.(*Live)
	d.API = webtest.On(t, all, func(c *web.Config) {
		c.Subscriber.Secrets = keys
		if d.Live != nil {
			c.Live = d.Live
		}
		c.Console, c.Logins = func(api http.Handler, bodies *rest.Buffers) http.Handler {
			config.Bodies = bodies
			return console.New(config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == d.broken {
					panic(http.ErrAbortHandler)
				}
				api.ServeHTTP(w, r)
			}))
		}, config.Sessions
	})
	return d
}

// Break has the API break off its answers to the console for a path.
func (d *Desk) Break(path string) { d.broken = path }

// Serve serves the bus and its console on loopback until the test ends.
func (d *Desk) Serve() { d.URL = d.Run() + "/console/" }

// Showing has a console show figures.
func Showing(f overview.Figures) func(*console.Config) {
	return func(c *console.Config) { c.Live = NewLive(f) }
}

// Full makes a console of a bus that has something of everything, and shows trouble. One topic has
// a name that the bus would not take today.
func Full(t testing.TB, redis *rdbtest.Server, adjust ...func(*console.Config)) *Desk {
	t.Helper()
	f := Trouble()
	f.Topics = append(f.Topics, overview.Topic{Name: "<script>", Publisher: `"><img src=x>`, State: overview.Unheard})
	d := New(t, redis, append([]func(*console.Config){Showing(f)}, adjust...)...)
	d.Fill()
	return d
}
