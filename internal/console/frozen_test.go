package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestPagesDoNotWaitForAFrozenRedis(t *testing.T) {
	redis := rdbtest.Real(t)
	d := consoletest.Full(t, redis, consoletest.Showing(consoletest.Away()))
	root, client := d.As(webtest.RootKey), d.As(shop)
	root.Send("", nil)
	client.Send("", nil)
	redis.Freeze(t)
	defer redis.Thaw(t)
	for path, b := range map[string]*consoletest.Browser{"": root, "topics/widgets": root, "subscribers/shop": client} {
		rdbtest.Promptly(t, time.Second, func() time.Duration {
			return rdbtest.Took(func() { assert.Equal(t, http.StatusOK, b.Send(path, nil).Code, path) })
		})
	}
}

// TestAPartOfAPageFailsAlone has the API break off in the middle of an answer, as when Redis goes
// away there.
func TestAPartOfAPageFailsAlone(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for path, broken := range map[string]string{"work": "/threads", "activity": "/activity"} {
		d.Break(broken)
		w := root.Send(path, nil)
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.Contains(t, w.Body.String(), "the bus did not answer", path)
	}
}

// TestARefreshSaysWhatItCouldNotRead has the API break off once a page is shown: its lists stay as
// they are, and would pass for the present.
func TestARefreshSaysWhatItCouldNotRead(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(shop)
	const path, says = "subscribers/shop", "Its queue and settings could not be read"
	shown := live(t, b.Send(path, nil).Body.String())
	d.Break("/subscriber")
	said := false
	for id, text := range live(t, b.Send(path, nil, "X-Refresh", "1").Body.String()) {
		if strings.Contains(text, says) {
			said = true
			assert.Contains(t, shown, id, "else live.js has nowhere to put it")
		}
	}
	assert.True(t, said)
}

// TestOnlyATokenIsAskedAbout breaks GET /whoami. A token may have been revoked since the login, so
// its session needs the call; a session of root does not.
func TestOnlyATokenIsAskedAbout(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	root, client := d.As(webtest.RootKey), d.As(shop)
	d.Break("/whoami")
	assert.Equal(t, http.StatusOK, root.Send("subscribers", nil).Code)
	assert.Equal(t, http.StatusServiceUnavailable, client.Send("subscribers", nil).Code)
}
