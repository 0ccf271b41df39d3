package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestPagesDoNotWaitForAFrozenRedis(t *testing.T) {
	redis := rdbtest.Real(t)
	d := newDesk(t, redis, func(c *console.Config) { c.Live = consoletest.NewLive(consoletest.Away()) })
	root, alice := d.as(t, webtest.RootKey), d.as(t, webtest.Alice)
	root.send("", nil)
	alice.send("", nil)
	redis.Freeze(t)
	defer redis.Thaw(t)
	for who, b := range map[string]*browser{"root": root, "alice": alice} {
		rdbtest.Promptly(t, time.Second, func() time.Duration {
			return rdbtest.Took(func() { assert.Equal(t, http.StatusOK, b.send("", nil).Code, who) })
		})
	}
}
