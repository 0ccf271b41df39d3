package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
)

// fixed returns the parts of a page that a refresh leaves alone: everything without data-live. It
// leaves out the actions too: they stay, because no button may move under the pointer.
func fixed(t *testing.T, text string) string {
	t.Helper()
	document := parse(t, text)
	for _, n := range slices.Collect(document.Descendants()) {
		if isLive(n) || attributesOf(n)["class"] == "actions" {
			n.Parent.RemoveChild(n)
		}
	}
	_, main, found := strings.Cut(textOf(t, document), "<main")
	require.True(t, found)
	return anyTime.ReplaceAllString(main, "<time>")
}

func TestALabelsPageShowsAllOfAMove(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it compares a page with itself")
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(shop)
	const path, gate = "machines/parcel/labels/p1", "metadata.go"
	before := b.Send(path, nil).Body.String()
	require.Contains(t, before, gate)
	answer := d.Do(shop, "PATCH", "/state-machines/parcel/labels/p1?wait=0", `{"metadata":{"go":true}}`)
	require.Equal(t, http.StatusOK, answer.Status, answer.Body)
	b.Submit(path + "/evaluate")
	d.Work()

	after := b.Send(path, nil).Body.String()
	require.Contains(t, after, "state=packed")
	assert.Equal(t, fixed(t, after), fixed(t, before), "this would contradict what is refreshed")
	refreshed := b.Send(path, nil, "X-Refresh", "1").Body.String()
	assert.Equal(t, live(t, after), live(t, refreshed))
	assert.NotContains(t, refreshed, gate)
}
