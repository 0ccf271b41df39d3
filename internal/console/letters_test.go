package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

// TestDeadLetters has more letters of one moment than a page has rows.
func TestDeadLetters(t *testing.T) {
	redis := rdbtest.Embedded(t)
	d := consoletest.Full(t, redis)
	b, buried := d.As(shop), storetest.NewBusOn(t, redis, d.Of(shop).Partition())
	bury := func(number, diedAt int, reason bus.DeathReason, status int) {
		buried.Bury(storetest.DeadLetter{
			Number: number, Token: shop, Reason: reason, Status: status, DiedAt: diedAt, Events: []int{number},
		})
	}
	d.Do(shop, "POST", "/subscriber/dead_letters/discard", `{"all":true}`)
	for i := range 120 {
		bury(i, 1000, bus.DiedRefused, 422)
	}
	bury(120, 500, bus.DiedOfAge, -1)
	const list = "subscribers/shop/dead-letters"

	seen := map[string]bool{}
	pages, address := 0, list
	for ; address != ""; pages++ {
		body := b.Send(address, nil).Body.String()
		for _, row := range regexp.MustCompile(`<tr id="letter-([^"]+)">`).FindAllStringSubmatch(body, -1) {
			assert.False(t, seen[row[1]], "each once")
			seen[row[1]] = true
		}
		assert.Contains(t, body, "Discard 121 dead letters…")
		next := regexp.MustCompile(`<a href="\?([^"]+)" rel="next">`).FindStringSubmatch(body)
		if address = ""; next != nil {
			address = list + "?" + strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	assert.Equal(t, 3, pages)
	assert.Len(t, seen, 121)
	assert.Contains(t, b.Send(list+"?reason=age", nil).Body.String(), "Discard 1 dead letter…")
	assert.Contains(t, b.Send(list+"?status=422", nil).Body.String(), "Discard 120 dead letters…")
	assert.Contains(t, b.Send(list+"?status=none", nil).Body.String(), "Discard 1 dead letter…")
	assert.Contains(t, b.Send(list+"?status=503", nil).Body.String(), "There are none that match.")
	assert.Contains(t, b.Send(list+"/redeliver?status=none", nil).Body.String(),
		"Redeliver dead letters of shop that got no answer")
	assert.Equal(t, http.StatusUnprocessableEntity, b.Send(list+"?status=timeout", nil).Code)
	assert.Contains(t, b.Send(list+"?since=2100-01-01", nil).Body.String(), "There are none that match.")
	assert.Equal(t, http.StatusUnprocessableEntity, b.Send(list+"?since=yesterday", nil).Code)

	_, body := b.Submit(list+"/redeliver?reason=refused&status=422", "amount", "100")
	assert.Contains(t, body, "Redelivered 100 dead letters with 100 events. About 20 are left.")

	// A letter that dies after the page was opened stays.
	opened := b.Send(list+"/discard", nil).Body.String()
	assert.Contains(t, opened, "Discard 21 dead letters of shop")
	assert.Contains(t, opened, "shop loses 21 events for good.")
	bury(200, 2000, bus.DiedRefused, 422)
	w := b.Send(list+"/discard", consoletest.Fields(opened))
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	assert.Contains(t, d.Do(shop, "GET", "/subscriber/dead_letters/count", "").Body, `"letters":1,`)
}

// TestDeadLettersOfOneOfTwoTokens discards them as root, and goes back to the rest of that token.
func TestDeadLettersOfOneOfTwoTokens(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	require.NoError(t, d.PutToken(t.Context(), "another-token", "shop"))
	d.RequireDone("another-token", "POST", "/subscription", `{"topics":["widgets"],"callback":"https://shop.example/"}`)
	root := d.As(webtest.RootKey)
	link := regexp.MustCompile(`href="([^"]*dead-letters)(\?id=[^"]+)"`).FindStringSubmatch(root.Send("subscribers/shop", nil).Body.String())
	require.NotNil(t, link)
	_, body := root.Submit("subscribers/shop/dead-letters/discard" + link[2])
	assert.Contains(t, body, "Discarded 1 dead letter with")
	assert.Contains(t, body, "There are none")
}

// TestManyDeadLettersAreDiscardedByName opens the page that asks while there are none, too.
func TestManyDeadLettersAreDiscardedByName(t *testing.T) {
	redis := rdbtest.Embedded(t)
	d := consoletest.Full(t, redis)
	b, buried := d.As(shop), storetest.NewBusOn(t, redis, d.Of(shop).Partition())
	d.Do(shop, "POST", "/subscriber/dead_letters/discard", `{"all":true}`)
	const discard = "subscribers/shop/dead-letters/discard"
	empty := b.Send(discard, nil).Body.String()
	for i := range 101 {
		buried.Bury(storetest.DeadLetter{Number: i, Token: shop, Reason: bus.DiedRefused, DiedAt: 1000 + i, Events: []int{i}})
	}
	assert.Equal(t, http.StatusSeeOther, b.Send(discard, consoletest.Fields(empty)).Code)
	status, body := b.Submit(discard)
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.Contains(t, body, "Discard 101 dead letters of shop")
	_, body = b.Submit(discard, "name", "shop")
	assert.Contains(t, body, "Discarded 101 dead letters with 101 events.")
}
