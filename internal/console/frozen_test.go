package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestPagesDoNotWaitForAFrozenRedis(t *testing.T) {
	redis := rdbtest.Real(t)
	d := consoletest.New(t, redis, consoletest.Showing(consoletest.Away()))
	root, alice := d.As(webtest.RootKey), d.As(webtest.Alice)
	root.Send("", nil)
	alice.Send("", nil)
	redis.Freeze(t)
	defer redis.Thaw(t)
	for who, b := range map[string]*consoletest.Browser{"root": root, "alice": alice} {
		rdbtest.Promptly(t, time.Second, func() time.Duration {
			return rdbtest.Took(func() { assert.Equal(t, http.StatusOK, b.Send("", nil).Code, who) })
		})
	}
}
