package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestTheActivityNamesWhoChangedWhat(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.Run()
	ada := d.As(shop, "person", "Ada <i>")
	status, _ := ada.Submit("subscribers/shop/pause")
	require.Equal(t, http.StatusSeeOther, status)
	root := d.As(webtest.RootKey)
	body := ""
	require.Eventually(t, func() bool {
		body = root.Send("activity", nil).Body.String()
		return strings.Contains(body, "shop (Ada &lt;i&gt;), here")
	}, time.Minute, 10*time.Millisecond)
	assert.Contains(t, body, "token created", "by root, with the API")
	assert.NotContains(t, body, shop)
}

func TestPagesWithAFormAreNotLoadedAnewWhileSomebodyTypes(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for _, p := range console.All() {
		w := root.Send(d.Path(p), nil)
		if w.Code == http.StatusOK && p.Submit != nil {
			assert.NotContains(t, w.Body.String(), `http-equiv="refresh"`, p.Path)
		}
	}
}
